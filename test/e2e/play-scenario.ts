import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { patienceMs } from '../support/patience.ts';
import { countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import type { Acting, Scenario } from './kill-scenarios.ts';
import type { ParleyProcess } from './parley-process.ts';
import { shownTwice } from './questions.ts';
import { type ChannelName, openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

export type Played = {
  /** From the last start until all that is expected has arrived, ms; includes the start of the process. */
  readonly answeredMs: number;
  /** The part of it until the gateway was ready. */
  readonly readyMs: number;
  readonly standing: readonly string[];
  /** Breaches of the conservation law in the store. */
  readonly breaches: readonly string[];
  /** How often each question is in the transcript. */
  readonly told: readonly number[];
  /** For each part whose fate is unknown: why, and what the answered message's own row says about it. */
  readonly unknown: readonly Readonly<Record<string, unknown>>[];
  /** How often a tool had its effect. */
  readonly effects: number;
  /** Names of the events that the gateway logged as errors in any of its lives. */
  readonly errors: readonly string[];
  /** What the model server rejected, such as a broken history. */
  readonly refusals: readonly string[];
  /** Questions that appeared twice in one request. */
  readonly shownTwice: readonly string[];
};

/** Plays a scenario to its end: dies where it should, comes back, comes to rest, is stopped. */
export async function playScenario(scenario: Scenario, channel: ChannelName): Promise<Played> {
  const stage = await openStage({ config: scenario.config, networks: [channel], env: scenario.env });
  let isDone = false;
  try {
    const played = await play(scenario, { channel, stage });
    isDone = true;
    return played;
  } catch (error) {
    throw new Error(`${scenario.kills[0]} on ${channel}; see ${stage.dataDir}/test.log`, { cause: error });
  } finally {
    await stage.close({ isKept: !isDone });
  }
}

async function play(
  scenario: Scenario,
  { channel, stage }: { channel: ChannelName; stage: Stage },
): Promise<Played> {
  const { reply, act, standing, whileAway, onceBack } = scenario.prepare();
  stage.model.script(reply);
  const person = stage.person(channel);
  const [firstKill = '', ...laterKills] = scenario.kills;
  const parley = await stage.start({ killAt: firstKill });
  const acting: Acting = { stage, person, parley };
  await act(acting);
  await died(parley, firstKill);
  for (const killAt of laterKills) await died(await stage.start({ killAt }), killAt);

  whileAway?.(acting);
  const began = performance.now();
  const revived = await stage.start();
  const readyMs = performance.now() - began;
  await onceBack?.({ ...acting, parley: revived });
  const stands = () => standing?.(acting) ?? person.standing();
  const wanted = scenario.expected.join('\n');
  await until(() => stands().join('\n') === wanted, {
    what: `stands ${JSON.stringify(scenario.expected)}`,
  }).catch((cause: unknown) => {
    throw new Error(`what stands: ${JSON.stringify(stands())}`, { cause });
  });
  const answeredMs = performance.now() - began;
  await until(person.isHeard, { what: 'all that was said is taken in' });
  await untilAtRest(stage.dataDir, scenario.events ?? scenario.questions.length);
  await revived.stop();
  return {
    answeredMs,
    readyMs,
    standing: stands(),
    breaches: findBreaches(stage.dataDir),
    told: countTold(stage.dataDir, scenario.questions),
    unknown: readStore(stage.dataDir, unknownParts),
    effects: stage.effects().length,
    errors: readErrors(stage.dataDir),
    refusals: stage.model.requests.flatMap(({ refusal }) => refusal ?? []),
    shownTwice: shownTwice(stage.model),
  };
}

const unknownParts = `select purpose, problem, outcomeReason from outbox
  left join inbox on inbox.runId = outbox.runId and inbox.outcomeReason is not null
  where outbox.state = 'unknown'`;

/** The kill must come from the probe: a process that died of something else proves nothing. */
async function died(parley: ParleyProcess, killAt: string): Promise<void> {
  const patience = AbortSignal.timeout(patienceMs);
  const late = new Promise<never>((_, reject) =>
    patience.addEventListener('abort', () => reject(new Error(`${killAt} was not reached`))),
  );
  const { signal, code } = await Promise.race([parley.ended, late]);
  if (signal !== 'SIGKILL') throw new Error(`it ended with ${signal ?? code} before ${killAt}`);
}

function readErrors(dataDir: string): readonly string[] {
  const lines = readFileSync(join(dataDir, 'test.log'), 'utf8').split('\n');
  return lines.filter((line) => line.includes('"level":"error"'));
}
