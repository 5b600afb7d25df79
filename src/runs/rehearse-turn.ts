import type { Clock } from '#contracts/clock.ts';
import { runId, type SessionKey, sessionId, transcriptId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { AgentMessage } from '#contracts/message.ts';
import type { ModelRequest } from '#contracts/model.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { createConverter } from '../agent/convert.ts';
import { toolSpecs } from '../agent/tool-specs.ts';
import type { Config } from '../config/config.ts';
import { createModels } from '../models/models.ts';
import { rehearsalRoute, rehearseMessage } from '../store/intake/rehearse-message.ts';
import type { ClaimTerms } from '../store/lanes/claim-due.ts';
import { needsBoundary } from '../store/lanes/steer.ts';
import { readArrivalFacts } from '../store/reads/arrival-facts.ts';
import { readContext } from '../store/reads/read-transcript.ts';
import type { RunDeps } from './execute-run.ts';

export type RehearsalDeps = Pick<RunDeps, 'store' | 'shaper' | 'agent' | 'systemFor' | 'toolsFor'> & {
  readonly config: Pick<Config, 'providers' | 'models' | 'model' | 'agents' | 'defaultAgent'>;
  readonly clock: Clock;
  readonly log: Log;
  terms(): ClaimTerms;
  /** Says whether real messages are being processed: they load the code themselves and must not wait. */
  isBusy(): boolean;
};

/**
 * Runs the code of a turn once in an idle process, so that the first message after a start needn't wait until it is
 * loaded, compiled and prepared. Contacts no server, stores nothing and sends nothing. Never rejects: the first message
 * will report what fails here.
 */
export async function rehearseTurn(deps: RehearsalDeps): Promise<void> {
  const { store, shaper, terms, isBusy } = deps;
  const pieces: readonly (() => Promise<unknown>)[] = [
    async () => store.write(rehearseMessage, terms()),
    () => store.read(readArrivalFacts, nobodysEvents),
    () => store.read(readContext, nobody),
    () => store.read(needsBoundary, nobody),
    () => rehearseCall(deps),
    async () => shaper.shape(sample, { maxLength: 2_000 }),
  ];
  for (const piece of pieces) if (!isBusy()) await piece().catch(() => undefined);
}

const nobody = { sessionId: 'rehearsal', laneKey: 'rehearsal', runId: 'rehearsal', epoch: 0 };
const nobodysEvents = {
  account: 'rehearsal',
  conversations: ['rehearsal'],
  senders: ['nobody'],
  peers: ['rehearsal:nobody'],
  identities: [],
};
const sample =
  '# Hello\n\n**One** or [two](https://example.org), `three`:\n\n- four\n\n| a | b |\n|---|---|\n| 1 | 2 |\n';

/** Calls the default model, up to the point where the request would be sent. */
async function rehearseCall({ config, clock, log, ...deps }: RehearsalDeps): Promise<void> {
  const leaving = new AbortController();
  const fetch = () => {
    leaving.abort();
    return Promise.reject(leaving.signal.reason);
  };
  const models = createModels(config, { clock, log, fetch });
  const request = await aRequest(deps, config);
  for await (const _ of models.stackFor(config.model).stream(request, leaving.signal)) break;
}

async function aRequest(
  { agent, systemFor, toolsFor }: Pick<RehearsalDeps, 'agent' | 'systemFor' | 'toolsFor'>,
  { defaultAgent }: Pick<Config, 'defaultAgent'>,
): Promise<ModelRequest> {
  const run: ToolRun = {
    runId: runId(nobody.runId),
    sessionId: sessionId(nobody.sessionId),
    // No session has this key: real keys have more segments.
    sessionKey: nobody.laneKey as SessionKey,
    agentId: defaultAgent,
    route: rehearsalRoute,
    authority: 'owner',
    workspace: agent(defaultAgent).workspace,
    epoch: nobody.epoch,
  };
  const tools = toolsFor(run);
  const message: AgentMessage = {
    id: transcriptId('rehearsal'),
    role: 'user',
    parts: [{ type: 'text', data: { text: 'hello' } }],
    createdAt: 0,
  };
  const convert = createConverter({ loadImage: async () => undefined });
  return {
    system: await systemFor(run, { chatKind: 'dm', tools }),
    messages: await convert([message]),
    tools: toolSpecs(tools),
    maxTokens: 1_000,
    reasoning: 'off',
  };
}
