// node check.mjs DOCUMENTS: reads {"name", "schema", "documents", "invalid"} in each line of the file and has ajv look at every document.
// What the formats mean is written here without regard to how the program writes them.
import { readFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import Ajv from 'ajv/dist/2020.js';

const ajv = new Ajv({ strict: false, allErrors: true });
const isDate = (text) => {
    const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
    if (!parts) return false;
    const date = new Date(0);
    date.setUTCFullYear(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]));
    return date.toISOString().slice(0, 10) === text;
};
const isTime = (text) => {
    const parts = /^(\d\d):(\d\d):(\d\d)(\.\d+)?(?:Z|[+-](\d\d):(\d\d))$/.exec(text);
    return parts !== null && [24, 60, 60].every((limit, i) => Number(parts[i + 1]) < limit) && Number(parts[5] ?? 0) < 24 && Number(parts[6] ?? 0) < 60;
};
ajv.addFormat('date', isDate);
ajv.addFormat('time', isTime);
ajv.addFormat('date-time', (text) => text[10] === 'T' && isDate(text.slice(0, 10)) && isTime(text.slice(11)));
ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i);
ajv.addFormat('ipv4', (text) => isIPv4(text));
ajv.addFormat('ipv6', (text) => isIPv6(text));
ajv.addFormat('email', (text) => /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(text));
ajv.addFormat('hostname', (text) => text.length <= 253 && text.split('.').every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label)));
ajv.addFormat('uri', (text) => URL.canParse(text));
ajv.addFormat('duration', (text) => /^P(?!$)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?$|^P\d+W$/.test(text));

let checked = 0;
const wrong = [];
for (const line of readFileSync(process.argv[2], 'utf8').split('\n')) {
    if (line === '') continue;
    const { name, schema, documents, invalid } = JSON.parse(line);
    const validate = ajv.compile(schema);
    const look = (text, expected) => {
        checked += 1;
        const valid = validate(JSON.parse(text));
        if (valid !== expected) wrong.push(`${name}: ${text} is ${valid ? 'valid' : `not valid: ${ajv.errorsText(validate.errors)}`}`);
    };
    for (const text of documents) look(text, true);
    for (const text of invalid) look(text, false);
}
for (const text of wrong.slice(0, 20)) console.log(text);
console.log(`${checked} documents, ${wrong.length} wrong`);
process.exit(wrong.length === 0 ? 0 : 1);
