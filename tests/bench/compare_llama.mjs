// Measures llama.cpp, as the npm package node-llama-cpp ships it, on one GGUF file: node compare_llama.mjs FOLDER MODEL THREADS PROMPT
// DECODE. FOLDER holds node_modules. Tokens are only evaluated: logits are asked for but nothing is sampled. Prints one JSON object.

import path from "node:path";
import {pathToFileURL} from "node:url";

const [folder, modelPath, threads, prompt, decode] = process.argv.slice(2);
const {getLlama} = await import(pathToFileURL(path.join(folder, "node_modules/node-llama-cpp/dist/index.js")).href);

const llama = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: Number(threads)});
const model = await llama.loadModel({modelPath});
const promptTokens = Number(prompt);
const decodeTokens = Number(decode);
const context = await model.createContext({
    contextSize: promptTokens + decodeTokens + 64, batchSize: Math.max(512, promptTokens), threads: Number(threads), sequences: 1
});
const native = context._ctx;
const tokens = Uint32Array.from({length: promptTokens}, (_, i) => 1000 + (i * 7919) % 20000);

async function evaluate(position, batch) {
    native.initBatch(batch.length);
    native.addToBatch(0, position, batch, Uint32Array.of(batch.length - 1));
    await native.decodeBatch();
}

async function run(steps) {
    native.disposeSequence(0);
    const begin = performance.now();
    await evaluate(0, tokens);
    const middle = performance.now();
    for (let i = 0; i < steps; ++i) await evaluate(promptTokens + i, Uint32Array.of(1000 + (i * 104729) % 20000));
    const end = performance.now();
    return {prompt_tps: promptTokens / (middle - begin) * 1000, decode_tps: steps / (end - middle) * 1000};
}

await run(8);  // pages and caches
console.log(JSON.stringify(await run(decodeTokens)));
process.exit(0);
