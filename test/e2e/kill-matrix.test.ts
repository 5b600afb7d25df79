/**
 * The promise, at every point where a crash could break it: after `kill -9` of the gateway and its Redis
 * and a start on the same folder, each message is in the transcript once and answered once, nothing is lost and
 * nothing is doubled. `npm run kill-matrix` writes the measured table to docs/kill-matrix.md.
 */

import { afterAll, expect, test } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { shareOf } from '../support/turn.ts';
import { approvalScenarios } from './approval-scenarios.ts';
import { compactionScenarios } from './compaction-scenarios.ts';
import { describeRow } from './describe-row.ts';
import { displayScenarios } from './display-scenarios.ts';
import { entranceScenarios } from './entrance-scenarios.ts';
import { type Scenario, scenarios } from './kill-scenarios.ts';
import { isReported, type MatrixRow, promised, writeMatrix } from './matrix-report.ts';
import { messageScenarios } from './message-scenarios.ts';
import { parkedScenarios } from './parked-scenarios.ts';
import { createSeries } from './play-scenario.ts';
import { previewScenarios } from './preview-scenarios.ts';
import type { ChannelName } from './stage.ts';
import { subagentScenarios } from './subagent-scenarios.ts';
import { taskScenarios } from './task-scenarios.ts';

const rows: MatrixRow[] = [];

const every = [
  ...scenarios,
  ...entranceScenarios,
  ...approvalScenarios,
  ...parkedScenarios,
  ...previewScenarios,
  ...subagentScenarios,
  ...taskScenarios,
  ...compactionScenarios,
  ...messageScenarios,
  ...displayScenarios,
].flatMap((scenario) =>
  [...scenario.channels, ...(isLong ? (scenario.longChannels ?? []) : [])].map((channel) => ({
    scenario,
    channel,
    name: nameOf(scenario, channel),
  })),
);
/** Each point, or series of points, in the scenario that names it first; the other ways to reach it take turns. */
const first = every.filter(
  ({ scenario }, index) => every.findIndex((one) => pointsOf(one.scenario) === pointsOf(scenario)) === index,
);
const others = shareOf(
  every.filter((one) => !first.includes(one)),
  12,
);
const cases = [...first, ...others];

function pointsOf({ kills }: Scenario): string {
  return [...new Set(kills.map((kill) => kill.split(':')[0]))].join();
}

function nameOf({ kills, title }: Scenario, channel: ChannelName): string {
  return `${kills.map((kill) => kill.replace(/:1$/, '')).join(', ')} on ${channel} (${title})`;
}

/** How many run side by side of those that could follow one another in one series. */
const sideBySide = 3;

/**
 * The series: what has one channel and one configuration. On the page and in the terminal there is one conversation,
 * so a scenario is alone there.
 */
const series = Object.values(
  Object.groupBy(cases, ({ scenario: { config, env }, channel, name }) => {
    const isAlone = channel === 'web' || channel === 'terminal';
    return JSON.stringify([channel, config, env, isAlone && name]);
  }),
).flatMap((all = []) => {
  const length = Math.ceil(all.length / sideBySide);
  if (length < 5) return [all];
  return Array.from({ length: sideBySide }, (_, index) => all.slice(index * length, (index + 1) * length));
});

for (const [index, members] of series.entries())
  describeRow(`kill -9, series ${index + 1}`, (atEnd) => {
    const { scenario, channel } = members[0] as (typeof cases)[number];
    const { play, close } = createSeries({ config: scenario.config, env: scenario.env, channel });
    atEnd(async () => expect(await close()).toEqual([]));
    // Not test.each: it truncates long names.
    for (const { scenario, name } of members)
      test(`loses and doubles nothing when killed at ${name}`, { timeout: 300_000 }, async () => {
        const played = await play(scenario);
        expect(played.breaches).toEqual([]);
        expect(played.errors).toEqual([]);
        expect(played.refusals).toEqual([]);
        expect(played.shownTwice).toEqual([]);
        expect(played.standing).toEqual(scenario.expected);
        expect(played.told).toEqual(scenario.questions.map(() => 1));
        const unknown = played.unknown.filter(
          ({ purpose }) => !scenario.mayCutNotice || purpose !== 'notice',
        );
        expect(unknown).toEqual(scenario.unknown ? [unknownPart(scenario)] : []);
        if (scenario.effects !== undefined) expect(played.effects).toBe(scenario.effects);
        promised(`${name}: answered`, { tookMs: played.answeredMs, withinMs: 10_000 });
        const { kills, title } = scenario;
        const { answeredMs, readyMs } = played;
        rows.push({ kills, title, channel, unknown: scenario.unknown, answeredMs, readyMs });
      });
  });

/** A send that was cut off is reported as unknown, and no other is. */
function unknownPart({ unknownPurpose: purpose = 'reply' }: Scenario) {
  const outcomeReason = purpose === 'reply' ? 'delivery unknown' : null;
  return { purpose, problem: 'interrupted while sending', outcomeReason };
}

afterAll(async () => {
  if (isReported() && rows.length === cases.length) await writeMatrix(rows);
});
