/**
 * The rules for every channel, as named checks: `channelContract(name, setup)` runs them as tests, and
 * `broken-adapters.test.ts` runs them on adapters that must fail. docs/new-channel.md says how to use it.
 */
import { describe, it } from 'vitest';
import { acknowledgingChecks, gapChecks, webhookChecks } from './contract/acknowledging-checks.ts';
import { type ContractCheck, tryCheck } from './contract/check.ts';
import type { ChannelHarness } from './contract/harness.ts';
import { identityChecks } from './contract/identity-checks.ts';
import { changeChecks, receivingChecks } from './contract/receiving-checks.ts';
import { sendingChecks } from './contract/sending-checks.ts';
import { stoppingChecks } from './contract/stopping-checks.ts';

export type { ChannelHarness, SendFaults, StandingText } from './contract/harness.ts';

export const channelChecks: readonly ContractCheck[] = [
  ...identityChecks,
  ...receivingChecks,
  ...changeChecks,
  ...acknowledgingChecks,
  ...gapChecks,
  ...webhookChecks,
  ...stoppingChecks,
  ...sendingChecks,
];

export function channelContract(name: string, setup: () => Promise<ChannelHarness>): void {
  describe(`${name} keeps the channel contract`, () => {
    for (const [group, checks] of Map.groupBy(channelChecks, (check) => check.group)) {
      describe(group, () => {
        for (const check of checks) {
          it(check.name, { timeout: 300_000 }, async ({ skip }) => {
            const verdict = await tryCheck(check, setup);
            if (verdict.kind === 'broken') throw verdict.error;
            if (verdict.kind === 'not-played') skip();
          });
        }
      });
    }
  });
}
