/**
 * The promise, at every point where a crash could break it: after `kill -9` of the gateway and its Redis
 * and a start on the same folder, each message is in the transcript once and answered once, nothing is lost and
 * nothing is doubled. `npm run kill-matrix` writes the measured table to docs/kill-matrix.md.
 */

import { afterAll, describe, expect, test } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { shareOf } from '../support/turn.ts';
import { approvalScenarios } from './approval-scenarios.ts';
import { compactionScenarios } from './compaction-scenarios.ts';
import { entranceScenarios } from './entrance-scenarios.ts';
import { type Scenario, scenarios } from './kill-scenarios.ts';
import { isReported, type MatrixRow, promised, writeMatrix } from './matrix-report.ts';
import { messageScenarios } from './message-scenarios.ts';
import { parkedScenarios } from './parked-scenarios.ts';
import { playScenario } from './play-scenario.ts';
import { previewScenarios } from './preview-scenarios.ts';
import type { ChannelName } from './stage.ts';
import { subagentScenarios } from './subagent-scenarios.ts';

const rows: MatrixRow[] = [];

const every = [
  ...scenarios,
  ...entranceScenarios,
  ...approvalScenarios,
  ...parkedScenarios,
  ...previewScenarios,
  ...subagentScenarios,
  ...compactionScenarios,
  ...messageScenarios,
].flatMap((scenario) =>
  [...scenario.channels, ...(isLong ? (scenario.longChannels ?? []) : [])].map((channel) => ({
    scenario,
    channel,
    name: nameOf(scenario, channel),
  })),
);
/** Each point, or series of points, in the scenario that names it first; the other ways to reach it take turns. */
const first = every.filter(({ scenario }, index) => {
  const kills = scenario.kills.join();
  return every.findIndex((one) => one.scenario.kills.join() === kills) === index;
});
const others = shareOf(
  every.filter((one) => !first.includes(one)),
  6,
);
const cases = [...first, ...others];

function nameOf({ kills, title }: Scenario, channel: ChannelName): string {
  return `${kills.map((kill) => kill.replace(/:1$/, '')).join(', ')} on ${channel} (${title})`;
}

describe.concurrent('kill -9', () => {
  // Not test.each: it truncates long names.
  for (const { scenario, channel, name } of cases)
    test(`loses and doubles nothing when killed at ${name}`, { timeout: 300_000 }, async () => {
      const played = await playScenario(scenario, channel);
      expect(played.breaches).toEqual([]);
      expect(played.errors).toEqual([]);
      expect(played.refusals).toEqual([]);
      expect(played.shownTwice).toEqual([]);
      expect(played.standing).toEqual(scenario.expected);
      expect(played.told).toEqual(scenario.questions.map(() => 1));
      expect(played.unknown).toEqual(scenario.unknown ? [unknownPart(scenario)] : []);
      if (scenario.effects !== undefined) expect(played.effects).toBe(scenario.effects);
      promised(`${name}: answered`, { tookMs: played.answeredMs, withinMs: 10_000 });
      const { kills, title, unknown } = scenario;
      const { answeredMs, readyMs } = played;
      rows.push({ kills, title, channel, unknown, answeredMs, readyMs });
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
