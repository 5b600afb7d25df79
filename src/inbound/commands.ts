import type { Authority } from '#contracts/outcome.ts';
import { type CommandName, type CommandSpec, commandTable } from './command-table.ts';
import { type LinkRequest, parseLinkRequest } from './link-request.ts';
import type { Activation } from './mention-gate.ts';
import { readOneTimeCode } from './one-time-code.ts';
import { type PairRequest, parsePairRequest } from './pair-request.ts';
import { isItemRequest, parseQueueRequest, type QueueRequest } from './queue-request.ts';

/** A chat command, read from the text of a message. */
export type Command =
  | { readonly name: 'help' | 'status' | 'whoami' | 'new' | 'reset' }
  | { readonly name: 'start' /** A deep link's code. */; readonly payload?: string }
  | { readonly name: 'stop'; readonly target: 'run' | 'all' }
  | { readonly name: 'queue'; readonly request: QueueRequest }
  | { readonly name: 'activation'; readonly activation: Activation }
  | { readonly name: 'link'; readonly request: LinkRequest }
  | { readonly name: 'pair'; readonly request: PairRequest };

export type ParsedCommand =
  | { readonly kind: 'command'; readonly command: Command; readonly spec: CommandSpec }
  /** A known command with words it cannot take: answer with `problem`, do nothing else. */
  | { readonly kind: 'malformed'; readonly spec: CommandSpec; readonly problem: string };

/**
 * The command that a message is, or undefined for plain text: no slash, an unknown name, or one that
 * is addressed to another bot (`/stop@other_bot`).
 */
export function parseCommand(text: string, bot: { readonly name?: string } = {}): ParsedCommand | undefined {
  const [, name, addressee, rest = ''] =
    /^\/([a-z]{1,32})(?:@([a-z0-9_.-]{1,64}))?(?:\s([\s\S]*))?$/i.exec(text.trim()) ?? [];
  const spec = commandTable.find((entry) => entry.name === name?.toLowerCase());
  if (spec === undefined) return undefined;
  if (addressee !== undefined && !isSameName(addressee, bot.name)) return undefined;
  return parseArguments(spec, rest.trim());
}

/**
 * Whether this sender may use a command here. A direct conversation is one's own, so that everyone who
 * got past access may use all but the owner's commands. `own`: only upon what is their own, a run that
 * their message started or a message that waits, which is known where the command is carried out.
 */
export function commandRight(
  parsed: { readonly spec: CommandSpec; readonly command?: Command },
  sender: {
    readonly chat: 'dm' | 'group';
    readonly authority: Authority;
    readonly isAdmin?: boolean | undefined;
  },
): 'allowed' | 'own' | 'denied' {
  const { command, spec } = parsed;
  const isOwner = sender.authority === 'owner';
  if (sender.chat === 'dm') return spec.inDms === 'anyone' || isOwner ? 'allowed' : 'denied';
  if (spec.inGroups === 'nobody') return 'denied';
  if (isOwner || sender.isAdmin === true) return 'allowed';
  if (command?.name === 'stop' && command.target === 'all') return 'denied';
  switch (spec.inGroups) {
    case 'anyone':
      return 'allowed';
    case 'own-run':
      return 'own';
    case 'own-items':
      return command?.name === 'queue' && isItemRequest(command.request) ? 'own' : 'denied';
    case 'admin':
      return 'denied';
    default:
      return spec.inGroups satisfies never;
  }
}

function isSameName(addressee: string, botName: string | undefined): boolean {
  return addressee.toLowerCase() === botName?.replace(/^@/, '').toLowerCase();
}

function parseArguments(spec: CommandSpec, rest: string): ParsedCommand {
  const { name } = spec;
  switch (name) {
    case 'help':
    case 'status':
    case 'whoami':
    case 'new':
    case 'reset':
      return rest === ''
        ? asCommand(spec, { name })
        : malformed(spec, `/${name} takes no text; send that on its own.`);
    case 'start':
      return parseStart(spec, rest);
    case 'stop':
      // "/stop it!" is a person who wants it stopped, so other words do not get in the way.
      return asCommand(spec, { name, target: rest.toLowerCase() === 'all' ? 'all' : 'run' });
    case 'queue': {
      const parsed = parseQueueRequest(rest);
      return parsed.kind === 'problem'
        ? malformed(spec, parsed.problem)
        : asCommand(spec, { name, request: parsed.request });
    }
    case 'activation': {
      const activation = rest.toLowerCase();
      return activation === 'mention' || activation === 'always'
        ? asCommand(spec, { name, activation })
        : malformed(spec, 'Use /activation mention or /activation always.');
    }
    case 'link': {
      const request = parseLinkRequest(rest);
      return typeof request === 'string' ? malformed(spec, request) : asCommand(spec, { name, request });
    }
    case 'pair': {
      const request = parsePairRequest(rest);
      return typeof request === 'string' ? malformed(spec, request) : asCommand(spec, { name, request });
    }
    default:
      return name satisfies never;
  }
}

/** A deep link carries one word; `link_` and a code is a link code, which is asked about once more: whoever taps has typed nothing. */
function parseStart(spec: CommandSpec, payload: string): ParsedCommand {
  const linkSpec = commandTable.find(({ name }) => name === 'link');
  const code = payload.startsWith('link_') ? readOneTimeCode(payload.slice('link_'.length)) : undefined;
  if (linkSpec && code !== undefined)
    return asCommand(linkSpec, { name: 'link', request: { kind: 'join', code, isFromLink: true } });
  return asCommand(spec, payload === '' ? { name: 'start' } : { name: 'start', payload });
}

function asCommand(spec: CommandSpec, command: Command & { readonly name: CommandName }): ParsedCommand {
  return { kind: 'command', command, spec };
}

function malformed(spec: CommandSpec, problem: string): ParsedCommand {
  return { kind: 'malformed', spec, problem };
}
