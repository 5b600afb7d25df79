/**
 * Threat 19: words that their sender didn't write and send are data. Every way in which a network passes words
 * on, every command, every role: through the channel's own mapping and the real intake into a real store,
 * none of it is executed. The same words, typed, are the control.
 */

import { describe, expect, it } from 'vitest';
import { chatCommands } from '../../src/commands/list.ts';
import { accountId } from '../../src/contracts/ids.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { openOwnStore } from '../support/own-store.ts';
import { anAccessFixture, type Door } from './access-fixture.ts';
import { type Form, type Network, openNetworks, type Role } from './provenance-forms.ts';

/** What makes a command act that doesn't act when sent alone. */
const orders: Readonly<Record<string, readonly string[]>> = {
  stop: ['/stop all'],
  compact: ['/compact all of it'],
  agent: ['/agent main'],
  model: ['/model haiku'],
  think: ['/think high'],
  reasoning: ['/reasoning on'],
  verbose: ['/verbose on'],
  budget: ['/budget', '/budget gateway 100'],
  queue: ['/queue reset'],
  subagents: ['/subagents list'],
  activation: ['/activation always'],
  link: ['/link', '/link ABCDEFGH', '/link confirm ABCDEFGH', '/start link_ABCDEFGH'],
  pair: ['/pair list', '/pair approve ABCDEFGH', '/pair confirm ABCDEFGH', '/pair revoke net:1'],
  approve: ['/approve abcdefghij'],
  deny: ['/deny abcdefghij'],
  start: ['/start ABCDEFGH'],
};
const texts = chatCommands.flatMap(({ name }) => orders[name] ?? [`/${name}`]);

type Cell = { readonly form: Form; readonly role: Role; readonly text: string };

describe('text that its sender did not write (threat 19)', () => {
  const dataDir = sharedFolder();
  const store = openOwnStore(dataDir);

  it('gives arguments to commands that exist', () => {
    expect(chatCommands.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(orders)));
  });

  it.each(openNetworks.map((open) => open()).map((network) => [network.channel, network] as const))(
    'executes borrowed commands for nobody on %s, but the same ones when typed',
    { timeout: 300_000 },
    async (_, network) => {
      const door = await anAccessFixture(store(), {
        dataDir: dataDir(),
        network: network.channel,
        policies: { dmPolicy: 'open', groupPolicy: 'allowlist' },
        config: configFor(network),
      });
      // The typed ones change what the others would meet, so they come last.
      for (const isTyped of [false, true]) {
        const forms = network.forms.filter((form) => form.isTyped === isTyped);
        const cells = forms.flatMap((form) =>
          network.roles.flatMap((role) => texts.map((text) => ({ form, role, text }))),
        );
        const executed = await play(door, cells);
        const wrong = cells.filter((cell) => executed.has(cell) !== (isTyped && isAllowed(cell)));
        expect(wrong.map(nameOf)).toEqual([]);
        if (!isTyped) expect(answersOf(door)).toEqual([]);
      }
    },
  );

  it('ignores borrowed text in a group, however it names the bot', async () => {
    const [open] = openNetworks;
    const network = open();
    const policies = { dmPolicy: 'open', groupPolicy: 'allowlist' } as const;
    const settings = { dataDir: dataDir(), network: network.channel, policies, config: configFor(network) };
    const door = await anAccessFixture(store(), settings);
    const forward = network.forms.find(({ name }) => name === 'forward of a user');
    const text = '/activation@ParleyBot always';
    const [envelope] = forward?.read(text, 'admin') ?? [];
    if (envelope?.event.kind !== 'message') throw new Error('nothing was read');
    const event = { ...envelope.event, mentionsBot: true };
    expect(await door.accept([inDoor(door, { ...envelope, event })])).toEqual([
      { kind: 'ignored', reason: 'not-mentioned' },
    ]);
  });
});

function configFor({ channel, idOf, group }: Network): object {
  return {
    owners: [`${channel}:${idOf('owner')}`],
    access: {
      dmPolicy: 'open',
      groupPolicy: 'allowlist',
      allowFrom: [`${channel}:${idOf('user')}`],
      allowGroups: [`${channel}:${group}`],
    },
  };
}

/**
 * The expected result, independently of the code: only an owner may pair, answer questions and raise a budget. An agent
 * is also chosen by a group's administrator.
 */
function isAllowed({ role, text }: Cell): boolean {
  if (text.startsWith('/agent')) return role === 'owner' || role === 'admin';
  return !/^\/(?:pair|hooks|budget gateway)/.test(text) || role === 'owner';
}

/** Sends them one after the other, and returns those that were obeyed. */
async function play(door: Door, cells: readonly Cell[]): Promise<ReadonlySet<Cell>> {
  const events = cells.flatMap((cell) =>
    cell.form.read(cell.text, cell.role).map((envelope) => ({ cell, envelope: inDoor(door, envelope) })),
  );
  const acceptances = await door.accept(events.map(({ envelope }) => envelope));
  const rows = door.rows(`select "id" from "inbox" where "account" = @account and "kind" = 'command'`);
  const commands = new Set(rows.map(({ id }) => id));
  const isObeyed = (n: number) => {
    const acceptance = acceptances[n];
    return (
      acceptance?.kind === 'command' || (acceptance?.kind === 'accepted' && commands.has(acceptance.inboxId))
    );
  };
  return new Set(events.flatMap(({ cell }, n) => (isObeyed(n) ? [cell] : [])));
}

function inDoor<One extends Parameters<Door['accept']>[0][number]>(door: Door, envelope: One): One {
  return { ...envelope, route: { ...envelope.route, account: accountId(door.bot) } };
}

/** Returns the answers to orders, including those about an order with a mistake in it. */
function answersOf(door: Door): readonly unknown[] {
  return door.rows(`select "content" from "outbox" where "key" like @account || ':%:answer'`);
}

function nameOf({ form, role, text }: Cell): string {
  return `${form.name}, ${role}: ${text}`;
}
