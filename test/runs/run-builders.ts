import { tmpdir } from 'node:os';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { fileSchema } from '../../src/config/schema.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import type { Tool } from '../../src/contracts/tool.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { type ActiveRuns, createActiveRuns } from '../../src/runs/active-runs.ts';
import { runSettingsFrom } from '../../src/runs/agents.ts';
import { executeRun, type RunDeps, type RunExit, type RunOptions } from '../../src/runs/execute-run.ts';
import type { Store } from '../../src/store/base/command.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import type { ScriptedModel } from '../agent/support/scripted-model.ts';
import { onlyModel } from '../models/only-model.ts';
import { aWorker, framing, unique } from '../store/builders.ts';
import { shaping } from '../support/free-loop.ts';
import { silentLog } from '../support/silent-log.ts';

export function someActiveRuns(store: Store, holder: string): ActiveRuns {
  return createActiveRuns({
    store,
    holder,
    clock: systemClock,
    log: silentLog,
    leaseMs: 10_000,
    renewMs: 5_000,
  });
}

const byDefault = runSettingsFrom(fileSchema.parse({}));

export const runSettings: RunDeps['settings'] = {
  ...byDefault,
  limits: { ...byDefault.limits, runTimeoutMs: 10_000, modelIdleMs: 10_000, turns: 10 },
  replyToMode: 'off',
  isPreviewOn: false,
  handOverMs: 5_000,
};

/** Returns everything that executing a run needs, with a scripted model and without a channel. */
export function runDeps(
  store: Store,
  { active, model, tools }: { active: ActiveRuns; model: ScriptedModel; tools: readonly Tool[] },
): RunDeps {
  return {
    store,
    clock: systemClock,
    log: silentLog,
    journal: { shown: () => undefined, end: () => undefined },
    probe: noProbe,
    texts: textsFor('en'),
    models: onlyModel({ ...createDemoProvider({ clock: systemClock }), stream: model.stream }),
    active,
    ...shaping,
    outbox: { claimAlong: (_, commit) => commit(undefined), continueFrom: async () => undefined },
    settings: runSettings,
    approvals: { validMs: 900_000, owners: [] },
    permit: async () => 'allowed',
    loadImage: async () => undefined,
    skillsFor: async () => ({ id: '', skills: [] }),
    agent: () => ({ workspace: tmpdir(), reasoning: 'off' }),
    framing: () => framing,
    systemFor: async () => [],
    toolsFor: () => tools,
    attachFiles: async (output) => output,
    freedRoom: () => undefined,
    channelFor: () => undefined,
    capabilitiesFor: () => undefined,
    start: () => undefined,
    feed: { publish: () => undefined, isFollowed: () => false, onTextRequest: () => undefined },
    redact: (text) => text,
  };
}

/** Returns options for a run that isn't asked to stop, and whose process claims no further run. */
export function untilDone(): RunOptions {
  return { signal: new AbortController().signal, mayKeepLane: () => false, claims: () => undefined };
}

type Playing = {
  readonly model: ScriptedModel;
  readonly tools?: readonly Tool[];
  readonly over?: Partial<RunDeps>;
};

/** Executes the lane's next or unfinished run in a new process, which ends with it. */
export async function playNext(
  store: Store,
  laneKey: string,
  { model, tools = [], over, ...options }: Playing & Partial<RunOptions>,
): Promise<{ readonly run: ClaimedRun; readonly exit: RunExit | undefined }> {
  const boot = unique('boot');
  const active = someActiveRuns(store, boot);
  const run = await aWorker(store, boot).claimRun(laneKey);
  const capabilitiesFor: RunDeps['capabilitiesFor'] = (route) =>
    over?.channelFor?.(route)?.definition.capabilities;
  const deps = { ...runDeps(store, { active, model, tools }), capabilitiesFor, ...over };
  const exit = await executeRun(deps, run, { ...untilDone(), ...options });
  await active.close();
  return { run, exit };
}
