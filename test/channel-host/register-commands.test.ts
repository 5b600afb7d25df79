import { expect, it, onTestFinished, vi } from 'vitest';
import { createCommandRegistrar } from '../../src/channel-host/register-commands.ts';
import { nativeCommands } from '../../src/commands/list.ts';
import type { HostedChannel } from '../../src/contracts/channel.ts';
import type { NativeCommand } from '../../src/contracts/channel-abilities.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { Store } from '../../src/store/base/command.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { aStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

const help: NativeCommand = { name: 'help', description: 'Show the commands' };
const patient = { timeout: patienceMs, interval: 5 };

async function anAccount(): Promise<Store> {
  const { store } = await aStore();
  await store.write(claimAccount, { account: 'test/bot', holder: 'boot', leaseMs: 60_000 });
  return store;
}

/** A process with a network that accepts command lists, or throws the next of `faults`. */
function aProcess(store: Store, commands: readonly NativeCommand[], faults: Error[] = []) {
  const clock = manualClock();
  const registered: (readonly NativeCommand[])[] = [];
  const registrar = createCommandRegistrar({ store, clock, log: silentLog, commands });
  onTestFinished(registrar.stop);
  const register = async (list: readonly NativeCommand[]) => {
    registered.push(list);
    const fault = faults.shift();
    if (fault) throw fault;
  };
  // The registrar reads nothing else of a channel.
  const channel = {
    definition: { id: 'test' },
    account: { id: 'bot', name: 'bot' },
    adapter: { commands: { register } },
  } as unknown as HostedChannel;
  return { clock, registered, registrar, channel };
}

it('registers the commands once and again only after they change', async () => {
  const store = await anAccount();
  const first = aProcess(store, [help]);
  first.registrar.register(first.channel);
  await vi.waitUntil(() => first.registered.length === 1, patient);
  await first.registrar.stop();

  const same = aProcess(store, [help]);
  same.registrar.register(same.channel);
  await same.registrar.stop();
  expect(same.registered).toEqual([]);

  const changed = aProcess(store, [{ ...help, argument: '[command]' }]);
  changed.registrar.register(changed.channel);
  await vi.waitUntil(() => changed.registered.length === 1, patient);
});

it('retries a failed registration, but not before the time that the network names', async () => {
  const retry = { kind: 'later', afterMs: 490_000 } as const;
  const busy = new ParleyError('channel_unavailable', 'slow down', { retry });
  const { clock, registered, registrar, channel } = aProcess(
    await anAccount(),
    [help],
    [new Error('away'), busy],
  );
  registrar.register(channel);
  registrar.register(channel);
  await vi.waitUntil(() => clock.waiting() === 1, patient);
  expect(registered).toHaveLength(1);
  clock.advance(60_000);
  await vi.waitUntil(() => registered.length === 2 && clock.waiting() === 1, patient);
  clock.advance(489_999);
  expect(clock.waiting()).toBe(1);
  clock.advance(1);
  await vi.waitUntil(() => registered.length === 3, patient);
});

it('names the arguments of a command, if it has any', () => {
  const argumentOf = (name: string) =>
    nativeCommands(textsFor('en')).find((command) => command.name === name)?.argument;
  expect(argumentOf('activation')).toBe('mention|always|off');
  expect(argumentOf('stop')).toBe('[all]');
  expect(nativeCommands(textsFor('en')).find(({ name }) => name === 'help')).not.toHaveProperty('argument');
});
