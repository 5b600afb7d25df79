#!/usr/bin/env node
// Replays recorded answers of model servers: `node scripts/recordings.mjs <folder>`. Reads VCR cassettes (YAML or JSON)
// and the fixtures of other projects (`.sse`, `.chunks.txt`, `.jsonl`, `.json`), serves each body byte for byte from a
// local server to the real providers, reads it once more by itself, and prints where the two differ. The recordings
// don't belong into this repository.
import { glob, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { parseAllDocuments } from 'yaml';
import { createAnthropicProvider } from '../src/models/anthropic.ts';
import { createOpenAiProvider } from '../src/models/openai/openai.ts';

/** Marks of reasoning and calls in a text: what becomes of them is the subject of test/inputs, not of this comparison. */
const marks = /<\/?(?:\w+:)?(?:think|thought|tool_call|function|invoke)|<\||｜|\[TOOL_CALLS|\[THINK|◁/i;

// Reading the recordings

/** Yields the answers of a file that one of the two APIs has given. */
function* answersIn(name, text) {
  if (/\.(?:ya?ml)$/.test(name)) {
    for (const document of parseAllDocuments(text, { maxAliasCount: -1 })) {
      const cassette = document.errors.length > 0 ? undefined : document.toJS({ maxAliasCount: -1 });
      for (const each of interactionsOf(cassette)) yield* answerOf(each);
    }
    return;
  }
  if (/\.json$/.test(name)) {
    const value = jsonOf(text);
    const recorded = interactionsOf(value);
    if (recorded.length > 0) for (const each of recorded) yield* answerOf(each);
    else if (value !== undefined) yield* fixture(text, [value], 'application/json');
    return;
  }
  const lines = text.split(/\r?\n/);
  const isStream = lines.some((line) => /^data: ?[{[]/.test(line));
  const values = isStream ? eventsIn(text) : lines.flatMap((line) => jsonOf(line) ?? []);
  if (isStream) yield* fixture(text, values, 'text/event-stream');
  else
    for (const answer of apart(values))
      yield* fixture(answer.map(asEvent).join(''), answer, 'text/event-stream');
}

function interactionsOf(value) {
  const all = value?.interactions ?? value?.http_interactions ?? (Array.isArray(value) ? value : []);
  return Array.isArray(all) ? all.filter((each) => each?.request && each?.response) : [];
}

function* answerOf({ request, response }) {
  const uri = String(request.uri ?? request.url ?? '');
  const api = /\/chat\/completions/.test(uri) ? 'chat' : /\/v1\/messages(?:\?|$)/.test(uri) ? 'messages' : '';
  const status = Number(response.status?.code ?? response.status ?? response.status_code ?? 200);
  const bytes = bytesOf(response, headerOf(response.headers, 'content-encoding'));
  if (api === '' || bytes === undefined) return;
  const text = bytes.toString();
  const type =
    headerOf(response.headers, 'content-type') || (jsonOf(text) ? 'application/json' : 'text/event-stream');
  yield { api, status, type, bytes, host: hostOf(uri) };
}

/** Returns a fixture without a request, if its content shows which API it is from. */
function* fixture(body, values, type) {
  const api = values.some((value) => Array.isArray(value?.choices) && value.choices.some(isChatChoice))
    ? 'chat'
    : values.some(
          (value) =>
            value?.type === 'message_start' ||
            (value?.type === 'message' && value.role === 'assistant' && value.usage),
        )
      ? 'messages'
      : undefined;
  if (api !== undefined) yield { api, status: 200, type, bytes: Buffer.from(body), host: 'a fixture' };
}

function isChatChoice(choice) {
  return (
    typeof choice?.delta === 'object' ||
    (typeof choice?.message === 'object' && choice.message?.role === 'assistant')
  );
}

/** Separates the answers that follow each other in one file. */
function apart(values) {
  const answers = [[]];
  for (const value of values) {
    const last = answers.at(-1);
    const hasEnded = last.some(({ type, choices }) => type === 'message_stop' || choices?.[0]?.finish_reason);
    const isNext = value.type === 'message_start' || (value.choices?.length > 0 && value.id !== last[0]?.id);
    if (hasEnded && isNext) answers.push([value]);
    else last.push(value);
  }
  return answers;
}

function asEvent(value) {
  return `${value?.type === undefined ? '' : `event: ${value.type}\n`}data: ${JSON.stringify(value)}\n\n`;
}

function bytesOf(response, encoding) {
  const { body, parsed_body: parsed } = response;
  if (parsed !== undefined) return Buffer.from(JSON.stringify(parsed));
  const held = body?.string ?? body?.base64_string ?? body?.content ?? body;
  if (held instanceof Uint8Array) return unpacked(Buffer.from(held), encoding);
  if (typeof held !== 'string') return undefined;
  if (body?.base64_string !== undefined) return unpacked(Buffer.from(held, 'base64'), encoding);
  return unpacked(Buffer.from(held), encoding);
}

function unpacked(bytes, encoding) {
  try {
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) return gunzipSync(bytes);
    if (encoding === 'br') return brotliDecompressSync(bytes);
    return encoding === 'deflate' ? inflateSync(bytes) : bytes;
  } catch {
    return bytes;
  }
}

function headerOf(headers, wanted) {
  const found = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === wanted)?.[1];
  return String(Array.isArray(found) ? found[0] : (found ?? ''));
}

function hostOf(uri) {
  return URL.parse(uri)?.hostname ?? 'unknown';
}

function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// The independent reader

function eventsIn(text) {
  const blocks = text.split(/(?:\r\n|\n|\r){2,}/);
  return blocks.flatMap((block) => {
    const data = block
      .split(/\r\n|\n|\r/)
      .flatMap((line) => (line.startsWith('data:') ? line.slice(5).trim() : []));
    return jsonOf(data.join('\n')) ?? [];
  });
}

/** Returns what a person would say that the answer contains. */
function understood({ api, status, bytes }) {
  const text = bytes.toString();
  const whole = jsonOf(text);
  const events = whole === undefined ? eventsIn(text) : [whole];
  const answer = api === 'chat' ? chatAnswer(events, whole !== undefined) : messagesAnswer(events);
  const hasFailed = events.some(({ error, type }) => Boolean(error) || type === 'error');
  return {
    ...answer,
    isRefused: status >= 400 || (hasFailed && !answer.isComplete),
    isWhole: whole !== undefined,
  };
}

function chatAnswer(events, isWhole) {
  const answer = { text: '', calls: [], usage: undefined, isComplete: false };
  const calls = new Map();
  for (const { choices, usage, x_groq: groq } of events) {
    const counted = usage ?? groq?.usage ?? choices?.[0]?.usage;
    if (counted?.prompt_tokens > 0) answer.usage = chatCounts(counted);
    const choice = choices?.find(({ index }) => (index ?? 0) === 0);
    // Perplexity sends both, the one that it doesn't mean empty or with all that was said so far.
    const part = isWhole ? (choice?.message ?? choice?.delta) : (choice?.delta ?? choice?.message);
    if (choice?.finish_reason) answer.isComplete = true;
    answer.text += contentOf(part?.content);
    const parts = part?.tool_calls ?? (part?.function_call?.name ? [{ function: part.function_call }] : []);
    for (const [position, { index = position, type, function: named }] of parts.entries()) {
      // Parley declares functions only.
      if (type === 'custom') continue;
      const call = calls.get(index) ?? { name: '', json: '' };
      calls.set(index, {
        name: call.name || (named?.name ?? ''),
        json: call.json + argumentsOf(named?.arguments),
      });
    }
  }
  answer.calls = [...calls.values()].map(({ name, json }) => [name, jsonOf(json || '{}') ?? json]);
  return answer;
}

/** The total includes what xAI and Gemini count beside the answer, their reasoning, and Mistral beside the prompt, sound. */
function chatCounts({ prompt_tokens: prompt, completion_tokens: output, total_tokens: total, ...more }) {
  const cached = more.prompt_tokens_details?.cached_tokens ?? 0;
  const whole = cached > prompt ? prompt + cached : prompt;
  const rest = Math.max(0, (total ?? 0) - whole - output);
  return 'prompt_audio_seconds' in more ? [whole + rest, output] : [whole, output + rest];
}

function contentOf(content) {
  if (!Array.isArray(content)) return content ?? '';
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function argumentsOf(given) {
  return typeof given === 'object' && given !== null ? JSON.stringify(given) : (given ?? '');
}

function messagesAnswer(events) {
  const blocks = [];
  let usage = {};
  let isComplete = false;
  const ids = new Set(events.flatMap(({ message }) => message?.id ?? []));
  for (const event of events) {
    const { type, index, content_block: block, delta } = event;
    if (type === 'message') blocks.push(...event.content.map((each) => ({ ...each })));
    usage = { ...usage, ...event.message?.usage, ...counts(event.usage) };
    if (type === 'content_block_start') blocks[index] = { ...block, json: '' };
    if (type === 'message_stop' || type === 'message') isComplete = true;
    if (delta?.text) blocks[index].text += delta.text;
    if (delta?.partial_json) blocks[index].json += delta.partial_json;
  }
  const {
    input_tokens: input = 0,
    cache_read_input_tokens: read = 0,
    cache_creation_input_tokens: written = 0,
  } = usage;
  const prompt = (input ?? 0) + (read ?? 0) + (written ?? 0);
  return {
    text: blocks.flatMap(({ type, text }) => (type === 'text' ? text : [])).join(''),
    calls: blocks.flatMap(({ type, name, json, input }) =>
      type === 'tool_use' ? [[name, json ? (jsonOf(json) ?? json) : (input ?? {})]] : [],
    ),
    usage: prompt > 0 && usage.output_tokens > 0 ? [prompt, usage.output_tokens] : undefined,
    // A proxy that asks again in the middle of an answer begins another one.
    isComplete: isComplete && ids.size < 2,
  };
}

function counts(usage) {
  return Object.fromEntries(Object.entries(usage ?? {}).filter(([, value]) => typeof value === 'number'));
}

// The providers

/** Serves what it was given last, whatever is asked. */
async function startServer() {
  const state = { url: '', answer: undefined, close: undefined };
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const { status, type, bytes } = state.answer;
      response.writeHead(status, { 'content-type': type }).end(bytes);
    });
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  state.url = `http://127.0.0.1:${server.address().port}`;
  state.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return state;
}

const request = {
  system: [{ text: 'You are helpful.', isStable: true }],
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  maxTokens: 4_096,
  reasoning: 'off',
};

/** Returns what the provider has read of a streamed answer. */
async function readStream(provider, calls) {
  const answer = { text: '', isComplete: false, usage: undefined, failure: undefined };
  const read = new Map();
  const tools = calls.map(([name]) => ({ name, description: name, inputSchema: { type: 'object' } }));
  for await (const event of provider.stream({ ...request, tools }, AbortSignal.timeout(60_000))) {
    if (event.type === 'content_delta') answer.text += event.text;
    if (event.type === 'content_recall') answer.text = '';
    if (event.type === 'tool_use_start') read.set(event.id, { name: event.name, json: '' });
    if (event.type === 'tool_use_delta') read.get(event.id).json += event.json;
    if (event.type === 'error') answer.failure = event.failure;
    if (event.type !== 'complete') continue;
    answer.isComplete = true;
    if (!event.isUncounted) answer.usage = countsOf(event.usage);
  }
  return { ...answer, calls: [...read.values()].map(({ name, json }) => [name, jsonOf(json) ?? json]) };
}

/** Returns what the provider has read of an answer that wasn't streamed; it passes on no calls. */
async function readWhole(provider, { calls }) {
  try {
    const { text, usage, isUncounted } = await provider.send(
      { ...request, tools: [] },
      AbortSignal.timeout(60_000),
    );
    return { text, calls, isComplete: true, usage: isUncounted ? undefined : countsOf(usage) };
  } catch (error) {
    return { text: '', calls, isComplete: false, failure: error.failure };
  }
}

function countsOf({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }) {
  return [inputTokens + cacheReadTokens + cacheWriteTokens, outputTokens];
}

/** Yields what the provider has read differently. */
function* differences(expected, read) {
  if (expected.isRefused) {
    if (read.isComplete && expected.text === '' && expected.calls.length === 0)
      yield ['outcome', 'a failure', 'an answer'];
    return;
  }
  if (!read.isComplete) {
    const { kind = 'none', detail = '' } = read.failure ?? {};
    if (expected.isComplete && kind !== 'refused') yield ['outcome', 'an answer', `${kind}: ${detail}`];
    return;
  }
  if (!marks.test(expected.text) && expected.text.trim() !== read.text.trim())
    yield ['text', expected.text, read.text];
  if (JSON.stringify(expected.calls) !== JSON.stringify(read.calls))
    yield ['calls', expected.calls, read.calls];
  if (String(expected.usage) !== String(read.usage)) yield ['usage', expected.usage, read.usage];
}

const shown = (value) =>
  (typeof value === 'string' ? JSON.stringify(value) : (JSON.stringify(value) ?? 'none')).slice(0, 300);

async function main(folder) {
  const server = await startServer();
  const access = { model: 'some-model', apiKeys: ['test-key'] };
  const providers = {
    chat: createOpenAiProvider({ ...access, baseUrl: `${server.url}/v1` }),
    messages: createAnthropicProvider({ ...access, baseUrl: server.url }),
  };
  const count = { files: 0, answers: 0, refusals: 0, calls: 0, differences: 0 };
  const hosts = new Set();
  for await (const name of glob('**/*.{yml,yaml,json,jsonl,sse,chunks.txt}', { cwd: folder })) {
    const file = join(folder, name);
    const answers = [...answersIn(file, await readFile(file, 'utf8'))];
    if (answers.length > 0) count.files += 1;
    for (const [index, answer] of answers.entries()) {
      const expected = understood(answer);
      server.answer = answer;
      const provider = providers[answer.api];
      const reads = [await readStream(provider, expected.calls)];
      if (expected.isWhole) reads.push(await readWhole(provider, expected));
      hosts.add(answer.host);
      count.answers += 1;
      count.calls += expected.calls.length;
      if (expected.isRefused) count.refusals += 1;
      for (const [what, wanted, found] of reads.flatMap((read) => [...differences(expected, read)])) {
        count.differences += 1;
        console.log(
          `${name}#${index} ${answer.host} ${what}: expected ${shown(wanted)}, read ${shown(found)}`,
        );
      }
    }
  }
  server.close();
  const { answers, files, refusals, calls } = count;
  console.log(
    `${answers} answers of ${hosts.size} hosts in ${files} files (${refusals} refusals, ${calls} tool calls): ${count.differences} differences`,
  );
  process.exitCode = count.differences === 0 ? 0 : 1;
}

if (process.argv[2] === undefined) {
  console.error('Give the folder with the recordings: node scripts/recordings.mjs <folder>');
  process.exitCode = 2;
} else await main(resolve(process.argv[2]));
