// The official clients of OpenAI's and Ollama's API against a running server:
//
//   node clients.mjs http://127.0.0.1:8080 MODEL [ANSWERS]
//
// ANSWERS: how many complete answers are checked for each schema, 3 unless told otherwise.
// Prints a line for each thing that works; ends with status 1 at the first that does not.
import assert from 'node:assert/strict';
import OpenAI, { APIError } from 'openai';
import { Ollama } from 'ollama';
import Ajv2020 from 'ajv/dist/2020.js';
import { schemas, unsupported } from './schemas.mjs';

const [address, model, answers = '3'] = process.argv.slice(2);
const openai = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'none', maxRetries: 0 });
const ollama = new Ollama({ host: address });
const messages = [{ role: 'user', content: 'What is the reserve?' }];
const weather = {
    type: 'function',
    function: {
        name: 'get_weather',
        description: 'The weather in a city',
        parameters: {
            type: 'object',
            properties: { city: { type: 'string', maxLength: 12 }, unit: { enum: ['celsius', 'fahrenheit'] } },
            required: ['city', 'unit'],
            additionalProperties: false,
        },
    },
};

async function check(name, action) {
    try {
        await action();
    } catch (error) {
        console.error(`failed: ${name}`);
        console.error(error);
        process.exit(1);
    }
    console.log(`ok: ${name}`);
}

await check('openai: models', async () => {
    const ids = [];
    for await (const entry of openai.models.list()) ids.push(entry.id);
    assert(ids.includes(model));
    assert.equal((await openai.models.retrieve(model)).id, model);
});

let said;
await check('openai: chat', async () => {
    const answer = await openai.chat.completions.create({ model, messages, temperature: 0, max_tokens: 40 });
    said = answer.choices[0].message.content;
    assert(said.length > 10);
    assert(['stop', 'length'].includes(answer.choices[0].finish_reason));
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
});

await check('openai: stream', async () => {
    let text = '', usage;
    const stream = await openai.chat.completions.create({ model, messages, temperature: 0, max_tokens: 40, stream: true, stream_options: { include_usage: true } });
    for await (const chunk of stream) {
        text += chunk.choices[0]?.delta?.content ?? '';
        usage = chunk.usage ?? usage;
    }
    assert.equal(text, said);
    assert(usage.completion_tokens > 0);
});

await check('openai: the stream helper', async () => {
    const runner = openai.chat.completions.stream({ model, messages, temperature: 0, max_tokens: 40 });
    assert.equal(await runner.finalContent(), said);
});

await check('openai: logprobs and several choices', async () => {
    const answer = await openai.chat.completions.create({ model, messages, max_tokens: 5, n: 2, logprobs: true, top_logprobs: 2, seed: 1 });
    assert.equal(answer.choices.length, 2);
    assert.equal(answer.choices[1].logprobs.content[0].top_logprobs.length, 2);
});

await check('openai: completions', async () => {
    const answer = await openai.completions.create({ model, prompt: 'The reserve is', max_tokens: 8, temperature: 0 });
    assert(answer.choices[0].text.length > 0);
});

await check('openai: tools', async () => {
    const answer = await openai.chat.completions.create({ model, messages, tools: [weather], tool_choice: 'required', parallel_tool_calls: false, max_tokens: 200 });
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(answer.choices[0].finish_reason, 'tool_calls');
    assert.equal(call.type, 'function');
    assert.equal(call.function.name, 'get_weather');
    const given = JSON.parse(call.function.arguments);
    assert(['celsius', 'fahrenheit'].includes(given.unit));
    // The conversation goes on with the tool's result.
    const next = await openai.chat.completions.create({
        model, max_tokens: 8, tools: [weather], tool_choice: 'none',
        messages: [...messages, answer.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'rain' }],
    });
    assert(next.choices[0].message.content !== undefined);
});

await check('openai: tools, streamed', async () => {
    const runner = openai.chat.completions.stream({ model, messages, tools: [weather], tool_choice: { type: 'function', function: { name: 'get_weather' } }, max_tokens: 200 });
    const message = await runner.finalMessage();
    assert.equal(message.tool_calls[0].function.name, 'get_weather');
    JSON.parse(message.tool_calls[0].function.arguments);
});

await check('openai: a JSON object', async () => {
    const answer = await openai.chat.completions.create({ model, messages, response_format: { type: 'json_object' }, max_tokens: 300, seed: 3 });
    if (answer.choices[0].finish_reason === 'stop') assert.equal(typeof JSON.parse(answer.choices[0].message.content), 'object');
});

await check('openai: embeddings', async () => {
    const { data } = await openai.embeddings.create({ model, input: ['a house', 'a home', 'seven'] });  // the client asks for base64
    assert.equal(data.length, 3);
    const length = data[0].embedding.reduce((sum, x) => sum + x * x, 0);
    assert(Math.abs(length - 1) < 1e-3);
});

await check('openai: abort', async () => {
    const controller = new AbortController();
    const stream = await openai.chat.completions.create({ model, messages, stream: true, logit_bias: { 65: 100 } }, { signal: controller.signal });
    let chunks = 0;
    for await (const _ of stream) {
        if (++chunks === 3) controller.abort();
    }
    for (let i = 0; i < 400; ++i) {
        const status = await (await fetch(`${address}/v1/status`)).json();
        if (status.scheduler.running === 0) return;
        await new Promise(done => setTimeout(done, 10));
    }
    assert.fail('the request goes on');
});

await check('openai: errors', async () => {
    const wrong = async (request, status) => {
        const error = await openai.chat.completions.create({ model, messages, ...request }).then(() => null, e => e);
        assert(error instanceof APIError);
        assert.equal(error.status, status);
        assert(error.message.length > 10);
    };
    await wrong({ messages: [] }, 400);
    await wrong({ temperature: 9 }, 400);
    await wrong({ model: 'nothing' }, 404);
});

await check('ollama: list, show, ps, version', async () => {
    assert((await ollama.list()).models.some(entry => entry.model === model));
    assert((await ollama.show({ model })).details.family.length > 0);
    assert.equal((await ollama.ps()).models.length, 1);
    assert((await (await fetch(`${address}/api/version`)).json()).version.length > 0);
});

await check('ollama: chat', async () => {
    const options = { temperature: 0, num_predict: 40 };
    const answer = await ollama.chat({ model, messages, options });
    assert.equal(answer.message.content, said);
    let text = '', last;
    for await (const part of await ollama.chat({ model, messages, options, stream: true })) {
        text += part.message.content;
        last = part;
    }
    assert.equal(text, said);
    assert.equal(last.done, true);
    assert(last.eval_count > 0);
});

await check('ollama: generate', async () => {
    const answer = await ollama.generate({ model, prompt: messages[0].content, options: { temperature: 0, num_predict: 40 } });
    assert.equal(answer.response, said);
});

await check('ollama: a schema', async () => {
    const schema = { type: 'object', properties: { size: { type: 'integer', minimum: 1, maximum: 9 } }, required: ['size'], additionalProperties: false };
    const answer = await ollama.chat({ model, messages, format: schema, options: { num_predict: 100, seed: 1 } });
    const { size } = JSON.parse(answer.message.content);
    assert(size >= 1 && size <= 9);
});

await check('ollama: embed', async () => {
    assert.equal((await ollama.embed({ model, input: ['a', 'b'] })).embeddings.length, 2);
});

await check('ollama: abort', async () => {
    const stream = await ollama.chat({ model, messages, stream: true, options: { num_predict: -1, repeat_penalty: 1 } });
    setTimeout(() => stream.abort(), 50);
    try {
        for await (const _ of stream);
    } catch (error) {
        assert.equal(error.name, 'AbortError');
    }
});

// Whatever a small model would like to say: what it says fits.
const ajv = new Ajv2020({ strict: false, validateFormats: false });
for (const [name, schema] of Object.entries(schemas)) {
    await check(`schema: ${name}`, async () => {
        const validate = ajv.compile(schema);
        let whole = 0;
        for (let seed = 1; seed <= 3 && whole < Number(answers); ++seed) {
            const answer = await openai.chat.completions.create({
                model, messages, seed, temperature: 1.2, max_tokens: 400,
                response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
            });
            if (answer.choices[0].finish_reason !== 'stop') continue;
            ++whole;
            const text = answer.choices[0].message.content;
            assert(validate(JSON.parse(text)), `${text}: ${ajv.errorsText(validate.errors)}`);
        }
        assert(whole > 0, 'no answer was complete');
    });
}
for (const [name, schema] of Object.entries(unsupported)) {
    await check(`refused: ${name}`, async () => {
        const error = await openai.chat.completions
            .create({ model, messages, response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } })
            .then(() => null, e => e);
        assert(error instanceof APIError, 'it was not refused');
        assert.equal(error.status, 400);
    });
}
