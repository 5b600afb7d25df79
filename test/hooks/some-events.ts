import type { DecidingHook, HookDecisions, HookEvent, HookRun, ObservingHook } from '#contracts/hook.ts';
import { accountId, agentId, channelId, conversationId, runId, sessionId } from '#contracts/ids.ts';
import { formatSessionKey } from '#contracts/session-key.ts';

const agent = agentId('main');
const [account, channel, group] = [accountId('77'), channelId('net'), conversationId('-1')];
const route = { channel, account, conversation: group };
const sessionKey = formatSessionKey({ kind: 'group', agent, account, channel, group });

export const aHookRun: HookRun = {
  ...{ runId: runId('r1'), sessionId: sessionId('s1'), sessionKey, agentId: agent },
  ...{ route, authority: 'owner' },
};

const call = { id: 'c1', name: 'write' };
const result = { text: 'done', isError: false, images: 1, metadata: { bytes: 4 } };
const sender = { id: '5', name: 'Ada' };

type DecidingCase<Name extends DecidingHook> = {
  readonly event: HookEvent<Name>;
  /** A change, and the part of the event that later handlers then see. */
  readonly change?: { readonly decision: HookDecisions[Name]; readonly shows: object };
  readonly final?: HookDecisions[Name];
  /** An answer of another form. */
  readonly wrong: unknown;
  readonly closes: boolean;
};

/** One case for each deciding hook. */
export const decidingCases: { readonly [Name in DecidingHook]: DecidingCase<Name> } = {
  message_received: {
    event: {
      ...{ eventKey: 'm:1', sessionKey, agentId: agent, route, chat: 'group', sender },
      ...{ text: 'hello', files: 0 },
    },
    change: { decision: { kind: 'rewrite', text: 'hi' }, shows: { text: 'hi' } },
    final: { kind: 'drop', reason: 'spam' },
    wrong: { kind: 'drop' },
    closes: false,
  },
  message_sending: {
    event: { source: 'answer', run: aHookRun, route, text: 'key 123' },
    change: { decision: { kind: 'rewrite', text: 'key ***' }, shows: { text: 'key ***' } },
    final: { kind: 'cancel', reason: 'not now' },
    wrong: { kind: 'rewrite', text: '' },
    closes: false,
  },
  before_agent_start: {
    event: { run: aHookRun, prompt: 'Be kind.', context: [] },
    change: {
      decision: { kind: 'rewrite', context: 'It rains.', prompt: 'Be brief.' },
      shows: { prompt: 'Be brief.', context: ['It rains.'] },
    },
    wrong: { kind: 'rewrite', context: 7 },
    closes: false,
  },
  agent_bootstrap: {
    event: { agentId: agent, isSubagent: false, files: [{ name: 'SOUL.md', text: 'warm' }] },
    change: {
      decision: { kind: 'rewrite', files: [{ name: 'TEAM.md', text: 'Ada' }] },
      shows: { files: [{ name: 'TEAM.md', text: 'Ada' }] },
    },
    wrong: { kind: 'rewrite', files: 'none' },
    closes: false,
  },
  before_tool_call: {
    event: { run: aHookRun, call, input: { path: 'a' }, isAsked: false },
    change: { decision: { kind: 'rewrite', input: { path: 'b' } }, shows: { input: { path: 'b' } } },
    final: { kind: 'block', reason: 'read-only today' },
    wrong: { kind: 'allow' },
    closes: true,
  },
  after_tool_call: {
    event: { run: aHookRun, call, result },
    change: {
      decision: { kind: 'rewrite', text: 'cut', isError: true, dropsImages: true, dropsMetadata: true },
      shows: { result: { text: 'cut', isError: true, images: 0 } },
    },
    wrong: { kind: 'rewrite', text: 5 },
    closes: true,
  },
  tool_result_persist: {
    event: { runId: 'r1', call, source: 'tool', result },
    change: {
      decision: { kind: 'rewrite', text: 'cut' },
      shows: { result: { ...result, text: 'cut' } },
    },
    wrong: 'cut',
    closes: true,
  },
  subagent_spawning: {
    event: { run: aHookRun, callId: 'c1', agentId: 'main', task: 'count', depth: 1 },
    final: { kind: 'refuse', reason: 'not at night' },
    wrong: { kind: 'refuse', reason: '' },
    closes: true,
  },
};

const model = {
  provider: 'lab',
  model: 'm',
  run: { runId: 'r1', sessionId: 's1', agentId: 'main' },
  purpose: 'turn',
} as const;

/** One event for each observing hook. */
export const observedEvents: { readonly [Name in ObservingHook]: HookEvent<Name> } = {
  gateway_start: { version: '1.0.0', role: 'all' },
  gateway_stop: {},
  message_sent: { sessionKey, route, part: 'p1', result: 'sent' },
  session_start: { sessionId: 's1', sessionKey },
  session_end: { sessionId: 's1' },
  before_reset: { sessionKey, command: 'new' },
  before_model_call: model,
  after_model_call: { ...model, result: 'answered', durationMs: 5 },
  agent_end: { run: aHookRun, reason: 'natural' },
  before_compaction: { run: model.run, oldTokens: 9000 },
  after_compaction: { run: model.run, oldTokens: 9000, newTokens: 900 },
  subagent_ended: { id: 's2' },
  'command:status': { command: 'status', sessionKey, agentId: 'main', route, sender },
};
