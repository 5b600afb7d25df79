import { randomUUID } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';
import type {
  LlmMessage,
  LlmProvider,
  ModelAnswer,
  ModelEvent,
  ModelInfo,
  ModelRequest,
  ToolSpec,
  Usage,
  UserBlock,
} from '#contracts/model.ts';
import { titlePrompt } from '../agent/system-prompt.ts';
import { demoFile, demoNote, demoPage } from '../config/demo.ts';
import { failureError } from './api-fault.ts';
import { noPrices } from './prices.ts';

const info: ModelInfo = {
  id: 'demo',
  contextWindow: 200_000,
  maxOutputTokens: 4_000,
  answerTokens: 4_000,
  canThink: false,
  prices: noPrices,
};

/** Creates a free, scripted model that needs no key. Every answer except a title says that it is the demo model. */
export function createDemoProvider(options: {
  readonly clock: Clock;
  /** Delay between two words, ms. Default: 30 */
  readonly chunkMs?: number;
  /** Creates ids of tool calls, which must be unique across all conversations. */
  readonly newId?: () => string;
}): LlmProvider {
  const { clock, chunkMs = 30, newId = randomUUID } = options;
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const turn = demoTurn(request);
    const aborted: ModelEvent = { type: 'error', failure: { kind: 'aborted', detail: 'aborted' } };
    yield { type: 'content_start' };
    for (const text of wordsOf(turn.text)) {
      await clock.wait(turn.wordMs ?? chunkMs, signal);
      if (signal.aborted) return yield aborted;
      yield { type: 'content_delta', text };
    }
    yield { type: 'content_stop' };
    for (const call of turn.calls ?? []) {
      if (signal.aborted) return yield aborted;
      yield* callEvents(call, `demo_${newId()}`);
    }
    const finish = turn.calls === undefined ? 'end_turn' : 'tool_use';
    yield { type: 'complete', finish, usage: usageOf(request, turn), cost: 0, model: info.id };
  }

  async function send(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    if (signal.aborted) throw failureError({ kind: 'aborted', detail: 'aborted' });
    const turn = demoTurn(request);
    return { text: turn.text, usage: usageOf(request, turn), cost: 0, model: info.id };
  }

  return { id: 'demo', stream, send, model: () => info };
}

function* callEvents(call: DemoCall, id: string): Generator<ModelEvent> {
  yield { type: 'tool_use_start', id, name: call.name };
  yield { type: 'tool_use_delta', id, json: JSON.stringify(call.input) };
  yield { type: 'tool_use_stop', id };
}

/** Splits text into words, each with the white space after it. */
function wordsOf(text: string): readonly string[] {
  return text.match(/\s*\S+\s*/g) ?? [];
}

/** Estimates usage as characters / 4, so that context and cost displays have something to show. */
function usageOf(request: ModelRequest, turn: DemoTurn): Usage {
  return {
    inputTokens: Math.ceil(JSON.stringify([request.system, request.messages]).length / 4),
    outputTokens: Math.ceil(turn.text.length / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
}

/**
 * The demo model's answers, as a pure function of the conversation: nothing is remembered between calls, so a
 * resumed run continues where it left off.
 */
type DemoCall = { readonly name: string; readonly input: Record<string, unknown> };
type DemoTurn = {
  readonly text: string;
  readonly calls?: readonly DemoCall[];
  /** Delay between two words, ms; absent: the usual delay. */
  readonly wordMs?: number;
};

const LABEL = '[demo model]';
/** Harmless tools that answer quickly, in order of preference. */
const SHOWN_TOOLS = ['list', 'session_status'];

function demoTurn(request: ModelRequest): DemoTurn {
  const last = request.messages.at(-1)?.content ?? [];
  const said = textOf(last);
  if (request.system.some(({ text }) => text === titlePrompt)) return { text: titleFor(said) };
  const results = last.flatMap((block) => (isResult(block) ? [block] : []));
  if (results.length > 0) return said === '' ? afterTool(request, results) : steered(said);
  return answer(said, request.tools);
}

function answer(said: string, tools: readonly ToolSpec[]): DemoTurn {
  switch (commandIn(said)) {
    case 'silent':
      return { text: 'NO_REPLY' };
    case 'help':
      return { text: help };
    case 'tool':
      return showTool(tools);
    case 'work':
      return workStep(1, tools);
    case 'spawn':
      return spawnTwo(tools);
    case 'part':
      return partStep(said, 1, tools);
    case 'delegate':
      return delegateDiamond(said, tools);
    case 'subtask':
      return subtaskStep(said, 1, tools);
    case 'ended':
      return synthesize(said);
    case 'ask':
      return askFirst(tools);
    case 'read':
      return readPage(said, tools);
    case 'use':
      return useTool(said, tools);
    case 'file':
      return fileStep(1, tools);
    case 'none':
      return {
        text: `${LABEL} I'm a script, not a real model. You said: “${said}”. Write “help” to see what I can show.`,
      };
  }
}

/** Returns the first words. */
function titleFor(said: string): string {
  return said.split(/\s+/, 6).join(' ');
}

const help = `${LABEL} I'm a script that shows what Parley does without a key. Write:
- “show a tool”: I call one of my tools
- “work”: a task of several steps; write something meanwhile and I read it before my next step
- “spawn two”: I give two sub-agents a part each, wait for both, and answer once
- “delegate tea”: I break a text about tea into four subtasks, sub-agents do two of them at the same time, and I write one answer
- “ask me”: I want to write a file, and ask you first
- “read a page”: I read a web page, by default one of this gateway
- “send me a file”: I write a file into my folder and send it to you
- “use weather Porto”: I call the tool “weather”, for example your own plugin's, with “Porto”, or with JSON: {"city": "Porto"}
- “be silent”: I decide not to answer
- anything else: I repeat it word by word, so you can watch it stream`;

type Command =
  | 'silent'
  | 'help'
  | 'tool'
  | 'work'
  | 'spawn'
  | 'part'
  | 'delegate'
  | 'subtask'
  | 'ended'
  | 'ask'
  | 'read'
  | 'use'
  | 'file'
  | 'none';

function commandIn(said: string): Command {
  if (/^\[Subtask \S+ of task /.test(said)) return 'subtask';
  if (/^\[Task \S+ "/.test(said)) return 'ended';
  if (/^(?:please )?delegate\b/i.test(said)) return 'delegate';
  if (/\b(be|stay|keep) silent\b/i.test(said)) return 'silent';
  if (/\bshow (me )?(a |the )?tools?\b/i.test(said)) return 'tool';
  if (/\bspawn two\b/i.test(said)) return 'spawn';
  if (/^Demo part \d\b/.test(said)) return 'part';
  if (/\bask me\b/i.test(said)) return 'ask';
  if (/^read (?:a page|https?:)/i.test(said)) return 'read';
  if (/^use \w+/i.test(said)) return 'use';
  if (/\bsend (me )?(a |the )?file\b/i.test(said)) return 'file';
  if (/\bwork\b/i.test(said)) return 'work';
  return /\bhelp\b/i.test(said) ? 'help' : 'none';
}

function showTool(tools: readonly ToolSpec[]): DemoTurn {
  const [tool] = shownTools(tools);
  if (tool === undefined) return { text: `${LABEL} I have no tool to show here.` };
  return { text: `${LABEL} I call the tool “${tool.name}”.`, calls: [callOf(tool)] };
}

/** Wants to write a file, which a person has to approve (`withDemo`). */
function askFirst(tools: readonly ToolSpec[]): DemoTurn {
  if (!tools.some(({ name }) => name === 'write')) return { text: `${LABEL} I have no file to write here.` };
  const input = { path: demoNote, content: 'A person has allowed the demo model to write this.\n' };
  return { text: `${LABEL} I'd like to write a file; that is up to you.`, calls: [{ name: 'write', input }] };
}

/** Writes a file, then sends it with a message. */
function fileStep(step: number, tools: readonly ToolSpec[]): DemoTurn {
  const name = step === 1 ? 'write' : 'message';
  if (!tools.some((tool) => tool.name === name)) return { text: `${LABEL} I can't send files here.` };
  if (step > 2) return { text: `${LABEL} That was the file.` };
  const input =
    step === 1
      ? { path: demoFile, content: '# A file\n\nThe demo model has written this, and sent it to you.\n' }
      : { action: 'send', text: `${LABEL} Here is a file from my folder.`, files: [demoFile] };
  return { text: step === 1 ? `${LABEL} I'm writing a file.` : '', calls: [{ name, input }] };
}

/** Reads the named page, or one of the gateway's own, whose address the tool's description names. */
function readPage(said: string, tools: readonly ToolSpec[]): DemoTurn {
  const tool = tools.find(({ name }) => name === 'web_fetch');
  if (tool === undefined) return { text: `${LABEL} I have no tool for web pages here.` };
  const [named] = /https?:\S+/.exec(said) ?? [];
  const [own] = /127\.0\.0\.1:\d+/.exec(tool.description) ?? [];
  const url = named ?? `http://${own}${demoPage}`;
  return { text: `${LABEL} I'm reading ${url}`, calls: [{ name: tool.name, input: { url } }] };
}

/** Calls the named tool; the words behind its name are its input in JSON, or what it requires. */
function useTool(said: string, tools: readonly ToolSpec[]): DemoTurn {
  const [, name = '', words = ''] = /^use (\w+)\s*(.*)$/is.exec(said) ?? [];
  const tool = tools.find((each) => each.name === name);
  if (tool !== undefined)
    return { text: `${LABEL} I call the tool “${name}”.`, calls: [callOf(tool, words)] };
  return { text: `${LABEL} I have no tool “${name}”. I have: ${tools.map((each) => each.name).join(', ')}.` };
}

/** Makes two calls in one turn: both sub-agents work at the same time, and the run waits for both without a slot. */
function spawnTwo(tools: readonly ToolSpec[]): DemoTurn {
  if (!tools.some(({ name }) => name === 'sessions_spawn'))
    return { text: `${LABEL} I can't start sub-agents here.` };
  const calls = [1, 2].map((part) => ({
    name: 'sessions_spawn',
    input: { task: `Demo part ${part} of 2.`, label: `part ${part}`, wait: true },
  }));
  return { text: `${LABEL} I'm starting two sub-agents and waiting for both.`, calls };
}

const partSteps = 3;

/** Makes one step of a sub-agent, which works for about five seconds, so that a person can watch, steer and stop it. */
function partStep(task: string, step: number, tools: readonly ToolSpec[]): DemoTurn {
  const part = /\d/.exec(task)?.[0] ?? '?';
  const [tool] = shownTools(tools);
  if (step > partSteps || tool === undefined) return { text: `${LABEL} Part ${part} is done.` };
  const text = `${LABEL} Part ${part}, step ${step} of ${partSteps}: I'm taking my time so that you can look at me, steer me or stop me.`;
  return { text, calls: [callOf(tool)], wordMs: 80 };
}

/** Combines all results into one answer, each without the lines around it; for a failed one, says how it ended. */
function afterChildren(results: readonly ToolResult[]): DemoTurn {
  const lines = results.map(({ content, isError }) => {
    const all = content.split('\n');
    const said = (isError ? undefined : all.find((line) => line.startsWith(LABEL))) ?? all[0] ?? '';
    return `- ${said.replace(LABEL, '').trim().slice(0, 300)}`;
  });
  return { text: [`${LABEL} Both sub-agents have ended:`, ...lines].join('\n') };
}

/** Asks for one thing, then for two that need it at the same time, and keeps the last one, which needs both. */
function delegateDiamond(said: string, tools: readonly ToolSpec[]): DemoTurn {
  const tool = tools.find(({ name }) => name === 'delegate');
  if (tool === undefined) return { text: `${LABEL} I can't delegate here.` };
  const topic =
    /delegate\s+(.{1,60})/is
      .exec(said)?.[1]
      ?.replace(/["“”\s]+/g, ' ')
      .trim() ?? 'tea';
  const roster = [...tool.description.matchAll(/^- ([\w-]+)(?::|$)/gm)].map(([, id = '']) => id);
  const agentFor = (index: number) => roster[index % roster.length] ?? 'self';
  const subtasks = [
    { id: 'outline', instructions: `Ask two questions about “${topic}”.` },
    { id: 'facts', instructions: `Answer the first question about “${topic}”.`, dependsOn: ['outline'] },
    { id: 'views', instructions: `Answer the second question about “${topic}”.`, dependsOn: ['outline'] },
  ].map((subtask, index) => ({ ...subtask, agent: agentFor(index) }));
  const dependsOn = ['facts', 'views'];
  const draft = {
    id: 'draft',
    agent: 'self',
    instructions: `Combine both answers about “${topic}”.`,
    dependsOn,
  };
  const input = { title: `A text about ${topic}`, subtasks: [...subtasks, draft] };
  return { text: `${LABEL} I'm breaking that into four subtasks.`, calls: [{ name: tool.name, input }] };
}

/** Ends the turn in which the task was delegated, or says why it wasn't. */
function afterDelegating(results: readonly ToolResult[]): DemoTurn {
  const content = results[0]?.content ?? '';
  if (!content.includes('"accepted"')) return { text: `${LABEL} That was refused: ${content.slice(0, 300)}` };
  return {
    text: `${LABEL} First “outline”, then “facts” and “views” at the same time, then “draft”. The answer comes when all have ended.`,
  };
}

const subtaskSteps = 2;

/** Makes one step of a subtask, which takes a few seconds. */
function subtaskStep(task: string, step: number, tools: readonly ToolSpec[]): DemoTurn {
  const [, id = ''] = /^\[Subtask (\S+)/.exec(task) ?? [];
  const [tool] = shownTools(tools);
  if (step <= subtaskSteps && tool !== undefined) {
    const text = `${LABEL} “${id}”, step ${step} of ${subtaskSteps}: I'm taking my time so that you can watch this.`;
    return { text, calls: [callOf(tool)], wordMs: 80 };
  }
  const [, topic = ''] = /“(.+?)”/.exec(task) ?? [];
  const upstream = contributionsIn(task).map((one) => `“${one.id}”`);
  const basis = upstream.length === 0 ? '' : ` I've read ${upstream.join(' and ')}.`;
  const results: Readonly<Record<string, string>> = {
    outline: `What is “${topic}”, and who likes it?`,
    facts: `“${topic}” is what you've asked about; a real model would know more.`,
    views: `I'm a script, so I have no opinion of “${topic}”.`,
    draft: `A script knows little about “${topic}”, and says so in one text.`,
  };
  return { text: `${LABEL} ${results[id] ?? 'Done.'}${basis}` };
}

/** Writes the answer to a task from the results of its subtasks. */
function synthesize(said: string): DemoTurn {
  const [, title = '', reason] =
    /^\[Task \S+ "(.*?)"(?:: (?:all|its) | has failed: (.*?)\.? Say so)/.exec(said) ?? [];
  const end =
    reason === undefined ? ', made from these results' : ` failed: ${reason}. This is what there is`;
  const lines = contributionsIn(said).map(({ id, agent, text }) => `- ${id} (${agent}): ${text}`);
  return { text: [`${LABEL} ${title}${end}:`, ...lines].join('\n') };
}

/** Finds results of subtasks in a message of the gateway. */
function contributionsIn(said: string): readonly Readonly<Record<'id' | 'agent' | 'text', string>>[] {
  return said.split(/^(?=\[[\w-]+ \([\w-]+\): )/m).flatMap((part) => {
    const [, id, agent, state = ''] = /^\[([\w-]+) \(([\w-]+)\): (.*)\]$/m.exec(part) ?? [];
    if (id === undefined || agent === undefined) return [];
    const result = part.split('\n').find((line) => line.startsWith(LABEL));
    return [{ id, agent, text: result?.replace(LABEL, '').trim().slice(0, 300) ?? state }];
  });
}

/**
 * Makes one step of a task that lasts long enough for a person to write something meanwhile. Alternates between
 * two tools, because the loop guard ends a run at the fourth identical call in a row; with one it makes only three.
 */
function workStep(step: number, tools: readonly ToolSpec[]): DemoTurn {
  const shown = shownTools(tools);
  const steps = shown.length > 1 ? 8 : 4;
  const tool = shown[step % Math.max(1, shown.length)];
  if (step === steps || tool === undefined) return { text: `${LABEL} Done: all ${steps} steps.` };
  const text = `${LABEL} Step ${step} of ${steps}: I'm slow on purpose: send another message and watch me change course before the next step.`;
  return { text, calls: [callOf(tool)] };
}

function afterTool(request: ModelRequest, results: readonly ToolResult[]): DemoTurn {
  const { said, steps } = taskOf(request.messages);
  const command = commandIn(said);
  if (command === 'work') return workStep(steps + 1, request.tools);
  if (command === 'part') return partStep(said, steps + 1, request.tools);
  if (command === 'subtask') return subtaskStep(said, steps + 1, request.tools);
  if (command === 'delegate') return afterDelegating(results);
  if (command === 'file' && results[0]?.isError !== true) return fileStep(steps + 1, request.tools);
  if (command === 'spawn') return afterChildren(results);
  const [result] = results;
  const verb = result?.isError === true ? 'failed and said' : 'answered';
  return { text: `${LABEL} The tool ${verb}: ${(result?.content ?? '').slice(0, 300)}` };
}

function steered(said: string): DemoTurn {
  return {
    text: `${LABEL} You steered me while I was working: “${said}”. I'm stopping my task to answer that.`,
  };
}

/** Returns the current task, and how many of its tool calls were answered. */
function taskOf(messages: readonly LlmMessage[]): { readonly said: string; readonly steps: number } {
  let steps = 0;
  for (const message of messages.toReversed()) {
    if (message.role === 'assistant') continue;
    if (!message.content.some(isResult)) return { said: textOf(message.content), steps };
    steps += 1;
  }
  return { said: '', steps };
}

function shownTools(tools: readonly ToolSpec[]): readonly ToolSpec[] {
  return SHOWN_TOOLS.flatMap((name) => tools.find((tool) => tool.name === name) ?? []);
}

/** Builds a call. Required arguments get the words, which for the shown tools are the path to look at. */
function callOf({ name, inputSchema }: ToolSpec, words = '.'): DemoCall {
  const written = parseJson(words);
  if (typeof written === 'object' && !Array.isArray(written)) return { name, input: { ...written } };
  const { required, properties } = inputSchema;
  const names = Array.isArray(required) ? required.map(String) : [];
  const isText = (member: string) =>
    Object(Object(properties)[member]).type === 'string' || written === undefined;
  return {
    name,
    input: Object.fromEntries(names.map((member) => [member, isText(member) ? words : written])),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type ToolResult = Extract<UserBlock, { type: 'tool_result' }>;

function isResult(block: LlmMessage['content'][number]): block is ToolResult {
  return block.type === 'tool_result';
}

function textOf(content: LlmMessage['content']): string {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  // The note that accompanies a message tells the time, which this script doesn't need, and a task's first line its ids.
  return texts
    .filter((text) => !text.startsWith('[Note from the gateway] It is '))
    .join('\n')
    .replace(/^\[Task [^\n]* Your last message is the reply\.\]\n/, '')
    .trim();
}
