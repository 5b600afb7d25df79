/** Chat commands of plugins. Their code runs in intake; their answer and their changes join the accepting transaction. */
import { withLimit } from '#channel-kit/with-limit.ts';
import type { PluginCommand } from '#contracts/plugin-parts.ts';
import { platformRef } from '../sessions/identities.ts';
import { changePluginData, type PluginOp, pluginOps } from '../store/rows/plugin-data.ts';
import { fillText } from '../texts/chat-texts.ts';
import {
  type Asker,
  adminsInGroups,
  anyone,
  asRequested,
  type ChatCommand,
  type CommandCall,
  chatCommand,
  type Order,
} from './chat-command.ts';

/** The plugins' commands of this process. */
export interface PluginCommands {
  list(): readonly { readonly plugin: string; readonly part: PluginCommand }[];
  noteFault(plugin: string, what: string, error: unknown): void;
}

type Input = {
  readonly plugin: string;
  readonly name: string;
  readonly ops: readonly PluginOp[];
  readonly say?: string;
  readonly hasFailed?: true;
};

type Facts = Input & { readonly conflict: boolean };

type Request = { readonly words: string };

/** Longest answer of a plugin's command, in UTF-16 units. */
const maxAnswer = 16_000;

/** How long a command may take, ms: until then, its account receives nothing else. */
const timeoutMs = 5_000;

const step = chatCommand<Request, Input, Facts>({
  name: 'plugin_command',
  menu: 'commandUnknown',
  parse: (words) => ({ words }),
  right: anyone,
  load: () => Promise.reject(new Error('only the plugin itself can run its command')),
  apply: async (tx, _scene, input) => {
    const commit = await changePluginData(tx, input);
    return {
      ...input,
      conflict: commit.kind === 'conflict',
      hasFailed: input.hasFailed || commit.kind === 'refused',
    } as Facts;
  },
  say: ({ name, say = '', conflict, hasFailed }, texts) => {
    if (conflict) return fillText(texts.pluginDataChanged, { name });
    return hasFailed ? fillText(texts.pluginCommandFailed, { name }) : say;
  },
});

/** The step of all plugins' commands. Nobody can type its name, since the list of commands doesn't have it. */
export const pluginStep: ChatCommand = {
  ...step,
  run: async (tx, scene, input) => {
    const answer = await step.run(tx, scene, input);
    return answer.text === '' ? { ...answer, text: undefined } : answer;
  },
};

/** Returns the order for a typed command of a plugin; undefined if no plugin has it. */
export function pluginOrder(commands: PluginCommands, name: string, words: string): Order | undefined {
  const found = commands.list().find(({ part }) => part.name === name);
  if (found === undefined) return undefined;
  const { plugin, part } = found;
  const right = (asker: Asker) => rightOf(part, asker);
  const deny = chatCommand({ ...denied, name, load: asRequested<object>, right }).deny;
  const command: ChatCommand = { ...pluginStep, right, deny: () => ({ ...deny(), command }) };
  return {
    command,
    request: { words },
    right,
    load: async (_deps, call) => ({ input: await runCommand(commands, { plugin, part, words }, call) }),
  };
}

const denied = {
  menu: 'commandUnknown',
  parse: () => ({}),
  apply: async () => ({}),
  say: () => '',
} as const;

/** Says what a sender may do with a plugin's command. */
export function rightOf({ right = 'anyone' }: PluginCommand, asker: Asker): 'allowed' | 'denied' {
  if (right === 'anyone') return 'allowed';
  if (right === 'owner') return asker.authority === 'owner' ? 'allowed' : 'denied';
  return adminsInGroups(asker) === 'denied' ? 'denied' : 'allowed';
}

async function runCommand(
  { noteFault }: PluginCommands,
  { plugin, part, words }: { readonly plugin: string; readonly part: PluginCommand; readonly words: string },
  { envelope, lane, authority }: CommandCall,
): Promise<Input> {
  const { name } = part;
  const sender = platformRef(envelope.route.channel, envelope.sender.id);
  const facts = { words, sender, authority, session: lane.key };
  try {
    const answer = await withLimit(timeoutMs, undefined, async (signal) => {
      const late = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => late.reject(signal.reason), { once: true });
      return Promise.race([part.run({ ...facts, signal }), late.promise]);
    });
    if (typeof answer === 'string') throw new Error('it returned a text; return { say } instead');
    const say = answer?.say === undefined ? undefined : String(answer.say).slice(0, maxAnswer).toWellFormed();
    return { plugin, name, ops: pluginOps(answer?.ops ?? []), ...(say !== undefined && { say }) };
  } catch (error) {
    noteFault(plugin, `command /${name}`, error);
    return { plugin, name, ops: [], hasFailed: true };
  }
}
