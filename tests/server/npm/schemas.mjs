// Schemas that an answer is held to, by what is special about each. Strings are bounded: a small model would not end them by itself.
const string = (maxLength = 8) => ({ type: 'string', maxLength });
const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required, additionalProperties: false });

export const schemas = {
    'a string': string(),
    'an integer': { type: 'integer', minimum: -5, maximum: 12 },
    'a number': { type: 'number', minimum: 0, maximum: 1 },
    'an exclusive bound': { type: 'integer', exclusiveMinimum: 3, exclusiveMaximum: 6 },
    'a large range': { type: 'integer', minimum: 1, maximum: 65535 },
    'a boolean': { type: 'boolean' },
    'null': { type: 'null' },
    'an enum': { enum: ['red', 'green', 'blue'] },
    'an enum of kinds': { enum: [1, 'one', null, true] },
    'a constant': { const: { a: [1, 2], b: 'c' } },
    'an object': object({ name: string(), size: { type: 'integer', minimum: 0, maximum: 99 } }),
    'optional fields': object({ a: { type: 'boolean' }, b: { type: 'boolean' }, c: { type: 'boolean' } }, ['b']),
    'nothing required': object({ a: { type: 'boolean' }, b: { type: 'null' } }, []),
    'nested objects': object({ outer: object({ inner: object({ deep: { type: 'boolean' } }) }) }),
    'an array': { type: 'array', items: { type: 'boolean' }, minItems: 1, maxItems: 4 },
    'an array of objects': { type: 'array', items: object({ id: { type: 'integer', minimum: 1, maximum: 9 } }), minItems: 2, maxItems: 2 },
    'an empty array': { type: 'array', items: { type: 'null' }, maxItems: 0 },
    'a tuple': { type: 'array', prefixItems: [{ type: 'boolean' }, { enum: ['x'] }], items: false, minItems: 2 },
    'nested arrays': { type: 'array', items: { type: 'array', items: { type: 'boolean' }, maxItems: 2 }, minItems: 1, maxItems: 2 },
    'a pattern': { type: 'string', pattern: '^[a-c]{2}-[0-9]{3}$' },
    'a pattern of choices': { type: 'string', pattern: '^(yes|no|perhaps)$' },
    'lengths': { type: 'string', minLength: 3, maxLength: 5 },
    'a union': { anyOf: [{ type: 'boolean' }, { type: 'integer', minimum: 0, maximum: 3 }, { type: 'null' }] },
    'a union of objects': { anyOf: [object({ kind: { const: 'a' }, x: { type: 'boolean' } }), object({ kind: { const: 'b' }, y: { type: 'null' } })] },
    'several types': { type: ['boolean', 'null'] },
    'a nullable field': object({ value: { type: ['integer', 'null'], minimum: 0, maximum: 9 } }),
    'definitions': { ...object({ first: { $ref: '#/$defs/point' }, second: { $ref: '#/$defs/point' } }), $defs: { point: object({ x: { type: 'integer', minimum: 0, maximum: 9 } }) } },
    'a tree': {
        ...object({ value: { type: 'boolean' }, children: { type: 'array', items: { $ref: '#/$defs/leaf' }, maxItems: 2 } }),
        $defs: { leaf: object({ value: { type: 'boolean' }, next: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/leaf' }] } }) },
    },
    'a recursive root': object({ done: { type: 'boolean' }, again: { anyOf: [{ type: 'null' }, { $ref: '#' }] } }),
    'a date': { type: 'string', format: 'date' },
    'one of': { oneOf: [{ const: 'left' }, { const: 'right' }] },
};

export const unsupported = {
    'an unknown type': { type: 'colour' },
    'not': { not: { type: 'string' } },
    'if': { type: 'object', if: { properties: { a: { const: 1 } } }, then: { required: ['b'] } },
    'a reference elsewhere': { $ref: 'https://example.com/schema.json' },
    'a reference to nothing': { $ref: '#/$defs/nothing' },
    'a broken pattern': { type: 'string', pattern: '^(a$' },
    'no possible value': { type: 'integer', minimum: 5, maximum: 4 },
    'recursion without an end': { ...object({ again: { $ref: '#' } }) },
};
