/**
 * The Agent Client Protocol for an editor: each of its sessions is a conversation that Parley keeps. The agent works in its
 * own workspace with its own tools, so those of the editor are never called. A connection that ends stops nothing, and a
 * prompt that is sent again, with the same id, waits for the same run.
 */
import { createHash, randomUUID } from 'node:crypto';
import type {
  AgentApp,
  AgentContext,
  AgentRequestContext,
  ListSessionsResponse,
  PromptRequest,
  PromptResponse,
  SessionUpdate,
  StopReason,
} from '@agentclientprotocol/sdk';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { parseSessionKey } from '#contracts/session-key.ts';
import { cancelRun } from '../../operations/agents.ts';
import type { GatewayDeps } from '../../operations/list.ts';
import { type Caller, Refusal } from '../../operations/operation.ts';
import { listMessages } from '../../operations/sessions.ts';
import { type AcceptedCall, type ProgramCalls, programLaneKey } from '../../service/program-calls.ts';
import type { RunResult } from '../../store/reads/read-run-result.ts';
import { readSessionReports } from '../../store/reads/read-sessions.ts';
import { watchPermissions } from './permissions.ts';
import { readPrompt } from './read-prompt.ts';
import { historyUpdates, TurnUpdates } from './turn-updates.ts';

export type AcpDeps = {
  readonly programs: ProgramCalls;
  readonly gateway: GatewayDeps;
  readonly version: string;
  /** Loaded when an editor first connects. */
  readonly sdk: typeof import('@agentclientprotocol/sdk');
};

export type AcpClient = {
  readonly agent: string;
  /** Names the editor's process: with a request's id it is the key of a prompt. */
  readonly client: string;
  readonly caller: Caller;
};

type Prompt = { runId?: string; isCancelled: boolean };

/** The access token's holder, whose name the editor may set. */
type Owner = { readonly id: 'owner'; readonly name: string; readonly authority: 'owner' };

const ownerId = 'owner';

/** Creates the agent of one connection. */
export function createAcpAgent(deps: AcpDeps, of: AcpClient): AgentApp {
  const { sdk, version } = deps;
  const sessions = new Sessions(deps, of);
  return sdk
    .agent({ name: 'Parley' })
    .onRequest('initialize', ({ params: { clientInfo } }) => {
      sessions.nameOwner(clientInfo?.title ?? clientInfo?.name);
      return {
        protocolVersion: sdk.PROTOCOL_VERSION,
        agentInfo: { name: 'parley', title: 'Parley', version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, embeddedContext: true },
          sessionCapabilities: { list: {}, resume: {}, close: {} },
        },
        authMethods: [],
      };
    })
    .onRequest('authenticate', () => ({}))
    .onRequest('session/new', () => ({ sessionId: `acp_${randomUUID()}` }))
    .onRequest('session/resume', async ({ params: { sessionId } }) => {
      await sessions.messagesOf(sessionId);
      return {};
    })
    .onRequest('session/load', async ({ params: { sessionId }, client: editor }) => {
      for (const update of historyUpdates(await sessions.messagesOf(sessionId)))
        await editor.notify('session/update', { sessionId, update });
      return {};
    })
    .onRequest('session/close', async ({ params: { sessionId } }) => {
      await sessions.cancel(sessionId);
      return {};
    })
    .onRequest('session/list', ({ params }) => sessions.list(params.cwd))
    .onRequest('session/prompt', (request) => sessions.prompt(request))
    .onNotification('session/cancel', ({ params }) => sessions.cancel(params.sessionId));
}

/** The conversations of one connection with one agent. */
class Sessions {
  readonly #deps: AcpDeps;
  readonly #of: AcpClient;
  readonly #open = new Map<string, Set<Prompt>>();
  #owner: Owner = { id: ownerId, name: 'Editor', authority: 'owner' };

  constructor(deps: AcpDeps, of: AcpClient) {
    this.#deps = deps;
    this.#of = of;
  }

  nameOwner(name: string | undefined): void {
    if (name !== undefined) this.#owner = { ...this.#owner, name };
  }

  /** Returns the newest messages. Throws for a session that is neither stored nor named here. */
  async messagesOf(sessionId: string) {
    const { gateway, sdk } = this.#deps;
    const page = { id: this.#laneOf(sessionId), limit: historyLength };
    const found = await listMessages.run(gateway, page, this.#of.caller);
    if (!(found instanceof Refusal)) return found.messages;
    // A session exists from its first prompt on, but the editor has its id from the beginning.
    if (ownId.test(sessionId)) return [];
    throw sdk.RequestError.sessionNotFound(sessionId);
  }

  async list(cwd: string | null | undefined): Promise<ListSessionsResponse> {
    const reports = await this.#deps.gateway.store.read(readSessionReports, { limit: maxListed });
    return {
      sessions: reports.flatMap(({ key, title, updatedAt }) => {
        const sessionId = conversationIn(key);
        if (sessionId === undefined || this.#laneOf(sessionId) !== key) return [];
        // A conversation belongs to no folder.
        const session = { sessionId, cwd: cwd ?? '/', updatedAt: new Date(updatedAt).toISOString() };
        return title === undefined ? [session] : [{ ...session, title }];
      }),
    };
  }

  async prompt(request: AgentRequestContext<PromptRequest>): Promise<PromptResponse> {
    const { agent, client, caller } = this.#of;
    const { sessionId } = request.params;
    const state: Prompt = { isCancelled: false };
    const open = this.#open.get(sessionId) ?? new Set();
    this.#open.set(sessionId, open.add(state));
    const over = new AbortController();
    const signal = AbortSignal.any([caller.signal, over.signal]);
    const key = keyOf(client, request.requestId);
    const turn = { agent, owner: this.#owner, state, laneKey: this.#laneOf(sessionId), key };
    try {
      return await answerPrompt({ ...this.#deps, caller: { ...caller, signal } }, request, turn);
    } finally {
      open.delete(state);
      over.abort();
    }
  }

  async cancel(sessionId: string): Promise<void> {
    for (const one of this.#open.get(sessionId) ?? []) {
      one.isCancelled = true;
      const { runId } = one;
      if (runId !== undefined) await cancelRun.run(this.#deps.gateway, { runId }, this.#of.caller);
    }
  }

  #laneOf(sessionId: string): string {
    return programLaneKey(this.#of.agent, ownerId, sessionId);
  }
}

/** How many messages an editor gets of a conversation that it opens again. */
const historyLength = 200;
/** How many conversations are looked through for those of editors, newest first. */
const maxListed = 200;
const ownId = /^acp_[0-9a-f-]{36}$/;

/** Names a prompt for as long as its editor runs. */
function keyOf(client: string, requestId: string | number | null): string {
  return `acp/${createHash('sha256')
    .update(JSON.stringify([client, requestId]))
    .digest('hex')}`;
}

function conversationIn(laneKey: string): string | undefined {
  const parts = parseSessionKey(laneKey);
  return parts?.kind === 'direct' ? (parts.peer ?? undefined) : undefined;
}

type Turn = {
  readonly agent: string;
  readonly owner: Owner;
  readonly state: Prompt;
  readonly laneKey: string;
  readonly key: string;
};

async function answerPrompt(
  deps: AcpDeps & { readonly caller: Caller },
  { params, client }: AgentRequestContext<PromptRequest>,
  turn: Turn,
): Promise<PromptResponse> {
  const { programs, gateway, caller, sdk } = deps;
  const { sessionId } = params;
  const { state, laneKey } = turn;
  const updates = new TurnUpdates(sender(client, sessionId), shownIn(params));
  const asked = readPrompt(params.prompt);
  if (typeof asked === 'string') throw sdk.RequestError.invalidParams(undefined, asked);
  const events = programs.follow(laneKey, caller.signal);
  const accepted = await programs.accept(
    {
      ...asked,
      caller: turn.owner,
      agent: turn.agent,
      conversation: sessionId,
      digest: createHash('sha256').update(JSON.stringify(params.prompt)).digest('base64url'),
      key: turn.key,
      retry: 0,
    },
    caller.signal,
  );
  if (accepted.kind === 'refused') throw sdk.RequestError.invalidParams(undefined, refusals[accepted.reason]);
  state.runId = accepted.runId;
  if (state.isCancelled) await cancelRun.run(gateway, { runId: accepted.runId }, caller);
  const permissions = watchPermissions({ gateway, caller, client, sessionId, laneKey, updates });
  const result = await followTo(resultOf(accepted), events, async (event) => {
    if (event.kind === 'parked' || event.kind === 'changed') permissions.look();
    await updates.tell(event);
  });
  if (result?.kind === 'ended') await updates.finish(result.text);
  const stopReason = stopReasonOf(result, state);
  if (stopReason === undefined)
    throw sdk.RequestError.internalError(
      undefined,
      `The agent gave no answer. To see why, run: ${parleyCommand} why ${accepted.runId}`,
    );
  return { stopReason, _meta: { parley: { runId: accepted.runId } } };
}

function sender(client: AgentContext, sessionId: string): (update: SessionUpdate) => Promise<void> {
  return (update) => client.notify('session/update', { sessionId, update });
}

/** Reads what the editor has of the present message, which `parley acp` adds to a prompt that it sends again. */
function shownIn({ _meta }: PromptRequest): string {
  const { shown } = (_meta?.parley ?? {}) as { readonly shown?: unknown };
  return typeof shown === 'string' ? shown : '';
}

const refusals = {
  unknown_agent: 'There is no such agent.',
  unknown_response: 'There is no such session.',
  other_agent: 'That session is another agent’s.',
  key_reused: 'This request’s id was used for another prompt.',
  image_unreadable: 'An image isn’t PNG, JPEG, GIF or WebP.',
} as const;

async function resultOf({ events }: AcceptedCall): Promise<RunResult | undefined> {
  for await (const event of events) if (event.kind === 'ended') return event.result;
  return undefined;
}

type Events = ReturnType<ProgramCalls['follow']>;
type FeedEvent = Exclude<Awaited<ReturnType<Events['next']>>['value'], { lagged: number }>;

/** Passes on each event until the result is known, and those that were published before it. */
async function followTo<Result>(
  result: Promise<Result>,
  events: Events,
  tell: (event: FeedEvent) => Promise<void>,
): Promise<Result> {
  const ended = result.then((value) => ({ ended: value }));
  for (let next = events.next(); ; next = events.next()) {
    // Checked second, so that what is already there is told first.
    const step = await Promise.race([next, ended]);
    if ('ended' in step) return step.ended;
    if (step.done) return (await ended).ended;
    if (!('lagged' in step.value)) await tell(step.value);
  }
}

/** Undefined: the run has failed. */
function stopReasonOf(result: RunResult | undefined, { isCancelled }: Prompt): StopReason | undefined {
  if (result?.kind !== 'ended') return isCancelled ? 'cancelled' : undefined;
  const { outcome, reason } = result;
  switch (outcome) {
    case 'answered':
    case 'silent':
    case 'merged':
      return 'end_turn';
    case 'cancelled':
      return 'cancelled';
    case 'refused':
      return 'refusal';
    case 'failed':
      if (isCancelled) return 'cancelled';
      return reason === 'turn_limit' ? 'max_turn_requests' : undefined;
    default:
      return outcome satisfies never;
  }
}
