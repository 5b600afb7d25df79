import type { ChannelEntry } from '#contracts/channel.ts';
import type { LoginStep } from '#contracts/channel-abilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { isInteractive } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { askGateway } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
import { renderQrCode } from './qr-code.ts';
import { settingsOf, withAdapter } from './with-adapter.ts';

type ShownChannel = { readonly id: string; readonly state: string; readonly detail: string };

/** What the gateway says of its channels, or, when it does not run, what the configuration says. */
export async function runChannelsStatus(
  channels: readonly ChannelEntry[],
  { asJson }: { readonly asJson: boolean },
): Promise<ExitCode> {
  const config = loadConfig();
  const answer = await askGateway(config);
  const isRunning = answer.kind === 'running';
  const shown = isRunning ? answer.status.channels : channels.map((entry) => asConfigured(config, entry));
  if (asJson) {
    process.stdout.write(`${JSON.stringify({ isRunning, channels: shown }, undefined, 2)}\n`);
    return 0;
  }
  const head = isRunning ? [] : ['Parley does not run; this is what the configuration says:'];
  const lines = shown.map(({ id, state, detail }) => `  ${id.padEnd(10)} ${state} (${detail})`);
  process.stdout.write(`${[...head, ...lines].map(stripText).join('\n')}\n`);
  return 0;
}

function asConfigured(config: Config, entry: ChannelEntry): ShownChannel {
  const { id } = entry;
  const isOn = settingsOf(config, id)?.enabled === true;
  return { id, state: isOn ? 'configured' : 'off', detail: isOn ? 'on at the next start' : whyOff(entry) };
}

function whyOff({ id, needs }: ChannelEntry): string {
  return needs === undefined ? `channels.${id}.enabled is false` : `it needs ${needs}`;
}

export type LoginOptions = {
  readonly channel: string;
  readonly asJson: boolean;
  /** Ends the attempt; absent: Ctrl-C does. */
  readonly signal?: AbortSignal;
};

/** Links this machine to a person's account on a network that works so. Throws ParleyError when it fails. */
export async function runChannelsLogin(
  channels: readonly ChannelEntry[],
  { channel, asJson, signal = untilInterrupted() }: LoginOptions,
): Promise<ExitCode> {
  const entry = channels.find(({ id }) => id === channel);
  if (entry === undefined) {
    const known = channels.map(({ id }) => id).join(', ');
    throw new ParleyError('invalid_input', `There is no channel “${channel}”; there are: ${known}.`);
  }
  const config = loadConfig();
  if (settingsOf(config, channel)?.enabled !== true)
    throw new ParleyError('config_invalid', `The channel ${channel} is off: ${whyOff(entry)}.`);
  await withAdapter(config, entry, async ({ login }) => {
    if (login === undefined) throw new ParleyError('invalid_input', noLogin(entry));
    for await (const step of login.login(signal)) {
      process.stdout.write(asJson ? `${JSON.stringify(step)}\n` : describeStep(entry, step));
    }
  });
  return 0;
}

function noLogin({ id, needs }: ChannelEntry): string {
  const instead = needs === undefined ? 'it needs none' : `set ${needs} instead`;
  return `The channel ${id} has no login: ${instead}.`;
}

function describeStep({ id }: ChannelEntry, step: LoginStep): string {
  switch (step.kind) {
    case 'scan': {
      // A file or a pipe cannot be scanned; the address can be made into a code elsewhere.
      const code = isInteractive() ? `\n${renderQrCode(step.uri)}` : '';
      return `Scan this with the app of ${id} (linked devices). It holds for a minute, then there is a new one.\n${code}\n${stripText(step.uri)}\n\n`;
    }
    case 'done':
      return `Linked: ${stripText(step.account)}. Start Parley again to use it.\n`;
    default:
      return step satisfies never;
  }
}

function untilInterrupted(): AbortSignal {
  const ending = new AbortController();
  process.once('SIGINT', () => ending.abort());
  return ending.signal;
}
