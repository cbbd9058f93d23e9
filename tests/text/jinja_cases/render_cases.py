#!/usr/bin/env python3
"""Fills the results of the cases in this folder in again, with Python's jinja2 set up as for chat templates.

Each file holds {"about", "context", "cases": [[template, text or null]]}; null stands for an error.

Usage: render_cases.py FILE…     (needs python3-jinja2)
"""
import datetime
import json
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """{% generation %}: the body as it is, with variables of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime(2026, 11, 29, 12, 0, 0).strftime
    return env


def result(env, template, context):
    try:
        return env.from_string(template).render(**json.loads(json.dumps(context)))
    except Exception:  # whatever Python raises is an error for the user
        return None


def main(paths):
    env = environment()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        rows = [[template, result(env, template, data["context"])] for template, _ in data["cases"]]
        with open(path, "w", encoding="utf-8") as file:
            file.write('{\n"about": %s,\n"context": %s,\n"cases": [\n' % tuple(json.dumps(data[key]) for key in ("about", "context")))
            file.write(",\n".join(json.dumps(row) for row in rows) + "\n]\n}\n")


main(sys.argv[1:])
