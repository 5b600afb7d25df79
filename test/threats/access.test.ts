/**
 * Threat 1: whatever the kind of event, nothing from somebody who may not write gets past intake. Uses the
 * real intake on a real store: a refused event leaves only its ledger row, with a reason and no
 * content, and at most a notice. No run, model call or download exists without an inbox row.
 */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Acceptance } from '../../src/contracts/acceptance.ts';
import { peerId } from '../../src/contracts/ids.ts';
import { isLong } from '../support/long-run.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { openOwnStore } from '../support/own-store.ts';
import {
  cellsOf,
  type DmPolicy,
  envelopeOf,
  type GroupPolicy,
  isLetIn,
  networks,
  type Policies,
  senders,
} from './access-cells.ts';
import { eventNames } from './access-events.ts';
import { anAccessFixture, contentsOf, findUnexplained } from './access-fixture.ts';

const generated = isLong ? 100_000 : 3_000;

describe('access (threat 1)', () => {
  const dataDir = sharedFolder();
  const store = openOwnStore(dataDir);
  const open = (network: string, policies: Policies) => {
    return anAccessFixture(store(), { dataDir: dataDir(), network, policies });
  };

  it.each(networks)(
    'admits whom the policies name and keeps nothing from anybody else, in every cell on %s',
    { timeout: 300_000 },
    async (network) => {
      let count = 0;
      for (const policies of everyPolicy) {
        const door = await open(network, policies);
        const cells = cellsOf(network, door.bot);
        const acceptances = await door.accept(cells.map(({ envelope }) => envelope));
        const isIn = (n: number) => isTakenIn(acceptances[n]);
        const wrong = cells.filter(({ cell }, n) => isIn(n) !== isLetIn(cell, policies));
        expect(wrong.map(({ cell }) => cell)).toEqual([]);
        const kept = contentsOf(door);
        const shut = cells.filter((_, n) => !isIn(n));
        expect(shut.filter(({ mark }) => kept.includes(mark)).map(({ cell }) => cell)).toEqual([]);
        expect(findUnexplained(door)).toEqual([]);
        // Every download belongs to an accepted message.
        const inbox = new Set(
          door.rows(`select "id" from "inbox" where "account" = @account`).map(({ id }) => id),
        );
        expect(door.fetches.filter((id) => !inbox.has(id))).toEqual([]);
        expect(shut.length).toBeGreaterThan(cells.length / 8);
        count += cells.length;
      }
      expect(count * networks.length).toBeGreaterThanOrEqual(2_300);
    },
  );

  it(`keeps nothing from ${generated.toLocaleString('en')} events of people who only look like the owner`, {
    timeout: 900_000,
  }, async () => {
    const [network] = networks;
    const policies = { dmPolicy: 'pairing', groupPolicy: 'allowlist' } as const;
    const door = await open(network, policies);
    const batchSize = 500;
    for (let from = 0; from < generated; from += batchSize) {
      const batch = fc
        .sample(imitation, { numRuns: batchSize, seed: 53 + from })
        .map(({ cell, sender }, n) =>
          envelopeOf(
            { ...cell, sender: 'stranger' },
            { network, bot: door.bot, mark: `${from + n};` },
            sender,
          ),
        );
      expect((await door.accept(batch)).filter(isTakenIn)).toEqual([]);
    }
    expect(contentsOf(door)).toBe('');
    expect(findUnexplained(door)).toEqual([]);
    expect(door.fetches).toEqual([]);
    const ledger = door.rows(`select count(*) as "rows" from "ledger" where "account" = @account`);
    expect(ledger).toEqual([{ rows: generated }]);
    const lanes = door.rows(`select "key" from "lanes" where "key" like '%' || substr(@account, 10) || '%'`);
    expect(lanes).toEqual([]);
    // Three of them wait with a code; of the others, those who open the chat are told that they are waiting.
    const said = door.rows(`select "content" from "outbox" where "conversationKey" like @account || '/%'`);
    const texts = said.map(({ content }) => String(JSON.parse(String(content)).text.text));
    expect(texts.filter((text) => text.startsWith('I don’t know you yet'))).toHaveLength(3);
    for (const text of texts)
      expect(text).toMatch(/^I don’t know you yet|^I’m still waiting|^Too many people/);

    // Intake doesn't simply refuse everyone.
    const cell = { event: 'text', sender: 'owner', chat: 'dm' } as const;
    const mine = envelopeOf(cell, { network, bot: door.bot, mark: 'mine;' });
    expect(await door.accept([mine])).toMatchObject([{ kind: 'accepted' }]);
    expect(contentsOf(door)).toContain('mine;');
  });
});

const dmPolicies: readonly DmPolicy[] = ['pairing', 'allowlist', 'open', 'disabled'];
const groupPolicies: readonly GroupPolicy[] = ['allowlist', 'open', 'disabled'];
/** Direct messages and groups don't depend on each other's policy, so each policy is paired with one of the other. */
const everyPolicy: readonly Policies[] = dmPolicies.map((dmPolicy, n) => ({
  dmPolicy,
  groupPolicy: groupPolicies[n % groupPolicies.length] ?? 'allowlist',
}));

/** Says whether it got past intake, whatever its lane or the message it refers to made of it then. */
function isTakenIn(acceptance: Acceptance | undefined): boolean {
  switch (acceptance?.kind) {
    case 'refused':
      return acceptance.reason === 'queue-full' || acceptance.reason === 'not-permitted';
    case 'ignored':
      return acceptance.reason !== 'own-message' && acceptance.reason !== 'bot-message';
    case 'pressed':
      return acceptance.result === 'approved' || acceptance.result === 'denied';
    case 'duplicate':
    case undefined:
      throw new Error('every cell is an event of its own');
    default:
      return true;
  }
}

const lookAlike = fc.constantFrom(
  'The Owner',
  'the owner',
  ' The Owner ',
  '@owner',
  '1',
  'telegram:1',
  'Тhe Owner',
);
const known: ReadonlySet<string> = new Set(Object.values(senders));
/** Ids that resemble the owner's: padded, signed, prefixed, in other digits. None belongs to anybody who may write. */
const foreignId = fc.oneof(
  fc.constantFrom('01', '1 ', ' 1', '+1', '1.0', '１', '1\u200b', '1\0', 'telegram:1', '@1', 'The Owner', ''),
  fc.nat().map((n) => String(n + 100)),
  fc.string({ minLength: 1, maxLength: 6 }).filter((text) => !known.has(text)),
);
const imitation = fc
  .record({
    cell: fc.record({
      event: fc.constantFrom(...eventNames),
      sender: fc.constant('stranger' as const),
      chat: fc.constantFrom('dm' as const, 'limited' as const, 'unlisted' as const),
    }),
    sender: fc.record({
      id: foreignId.map(peerId),
      name: lookAlike,
      isAdmin: fc.boolean(),
    }),
  })
  // Drops events that the platform itself reports about an allowed group, which have no author.
  .filter(({ cell }) => !isLetIn(cell, { dmPolicy: 'pairing', groupPolicy: 'allowlist' }));
