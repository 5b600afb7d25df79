import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { patienceMs } from '../support/patience.ts';
import { forgetEffects } from './asking-tool.ts';
import { countEvents, countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { type Acting, firstId, type Scenario } from './kill-scenarios.ts';
import type { ParleyProcess } from './parley-process.ts';
import { shownTwice } from './questions.ts';
import { type ChannelName, openStage, type Stage, type StageSettings } from './stage.ts';
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

export type Series = {
  /**
   * Plays a scenario to its end: dies where it should, comes back, comes to rest. The process that came back is the
   * one that dies in the next scenario, which somebody else plays.
   */
  play(scenario: Scenario): Promise<Played>;
  /** Stops the last process, and says what was wrong in it after the last scenario. */
  close(): Promise<readonly string[]>;
};

export type SeriesSettings = Pick<StageSettings, 'config' | 'env'> & { readonly channel: ChannelName };

/** Scenarios of one configuration, one after the other on one data folder. After one that fails, it begins anew. */
export function createSeries({ channel, config, env }: SeriesSettings): Series {
  let stage: Stage | undefined;
  let living: ParleyProcess | undefined;
  let played = 0;
  return {
    play: async (scenario) => {
      stage ??= await openStage({ config, networks: [channel], env });
      const { dataDir } = stage;
      try {
        const id = firstId + played;
        played += 1;
        const dying = living ?? (await stage.start());
        const { revived, outcome } = await play(scenario, {
          stage,
          person: stage.person(channel, id),
          id,
          parley: dying,
        });
        living = revived;
        return outcome;
      } catch (error) {
        await stage.close({ isKept: true });
        stage = undefined;
        living = undefined;
        throw new Error(`${scenario.kills[0]} on ${channel}; see ${dataDir}/test.log`, { cause: error });
      }
    },
    close: async () => {
      if (!stage) return [];
      await living?.stop();
      const wrong = [...findBreaches(stage.dataDir), ...readErrors(stage.dataDir)];
      await stage.close({ isKept: wrong.length > 0 });
      return wrong;
    },
  };
}

async function play(
  scenario: Scenario,
  acting: Acting,
): Promise<{ readonly revived: ParleyProcess; readonly outcome: Played }> {
  const { stage, person, parley } = acting;
  const { dataDir, model } = stage;
  const { reply, act, standing, whileAway, onceBack } = scenario.prepare();
  model.script(reply);
  forgetEffects(stage.home);
  const [firstKill = '', ...laterKills] = scenario.kills;
  const before = look(stage, scenario);
  await parley.killAt(firstKill);
  await act(acting);
  await died(parley, firstKill);
  if (!beforeAccepted.test(firstKill) && countEvents(dataDir) === before.events)
    throw new Error(`it died at ${firstKill} before anything was accepted`);
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
  await untilAtRest(dataDir, before.events + (scenario.events ?? scenario.questions.length));
  const after = look(stage, scenario);
  const outcome = {
    answeredMs,
    readyMs,
    standing: stands(),
    breaches: findBreaches(dataDir),
    told: after.told.map((times, index) => times - (before.told[index] ?? 0)),
    unknown: after.unknown.slice(before.unknown.length),
    effects: stage.effects().length,
    errors: after.errors.slice(before.errors.length),
    refusals: after.refusals.slice(before.refusals.length),
    shownTwice: after.shownTwice.slice(before.shownTwice.length),
  };
  return { revived, outcome };
}

/** Until then the message is the network's alone. */
const beforeAccepted = /^(received|fetched|download):/;

/** What all scenarios of the series have left so far. */
function look({ dataDir, model }: Stage, { questions }: Scenario) {
  return {
    events: countEvents(dataDir),
    told: countTold(dataDir, questions),
    unknown: readStore(dataDir, unknownParts),
    errors: readErrors(dataDir),
    refusals: model.requests.flatMap(({ refusal }) => refusal ?? []),
    shownTwice: shownTwice(model),
  };
}

const unknownParts = `select purpose, problem, outcomeReason from outbox
  left join inbox on inbox.runId = outbox.runId and inbox.outcomeReason is not null
  where outbox.state = 'unknown' order by outbox.seq`;

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
