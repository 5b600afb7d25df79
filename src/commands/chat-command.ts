/** The form of a chat command. Each command is one file in this folder; docs/new-command.md says how to add one. */
import type { DisplayChoice } from '#contracts/display.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { HookState } from '#contracts/hook.ts';
import type { ReasoningLevel } from '#contracts/model.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { PluginCommand } from '#contracts/plugin-parts.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { BudgetRules } from '../models/budget-rules.ts';
import type { Models } from '../models/models.ts';
import type { Identities, IdentityLinks } from '../sessions/identities.ts';
import type { DmScope } from '../sessions/session-key-of.ts';
import type { CommandPlace, CommandScene, CommandStep, StepTx, Store } from '../store/base/command.ts';
import type { LaneSpec } from '../store/base/keys.ts';
import { type ChatTexts, fillText, type TextKey, type TextValues } from '../texts/chat-texts.ts';

/** The sender of a command, and the kind of chat. */
export type Asker = {
  readonly chat: 'dm' | 'group';
  readonly authority: Authority;
  /** Administrator of the group, according to the network. */
  readonly isAdmin?: boolean | undefined;
};

/** `own`: only on the sender's own items, which `apply` checks. */
export type Right = 'allowed' | 'own' | 'denied';

/** Words that the command can't accept: the person is told this, and nothing else happens. */
export type Problem = { readonly problem: TextKey; readonly values?: TextValues };

/** A command with the event it came in, for `load`. */
export type CommandCall = {
  readonly envelope: InboundEnvelope;
  /** The envelope with the conversation id known to session and configuration. */
  readonly place: InboundEnvelope;
  readonly conversationKey: string;
  readonly lane: LaneSpec;
  /** The agent that would answer if none were chosen in chat for this very place. */
  readonly agentOtherwise: string;
  readonly authority: Authority;
  readonly right: Right;
  /** Accounts linked with the sender's, in the configuration or in chat. */
  readonly identities: Identities;
  /** The bot's name on its network. */
  readonly botName: string;
  /** The bot account's name in the configuration. */
  readonly accountName?: string | undefined;
  /** The configuration's queue settings for this conversation; the first level that names one applies. */
  readonly queueLevels: readonly QueueLevel[];
  /** Milliseconds since the epoch. */
  readonly now: number;
};

/** One level of the configuration, and the settings it names. */
export type QueueLevel = {
  readonly level: 'conversation' | 'channel' | 'global';
  readonly names: Partial<QueueSettings>;
};

/** The operator's settings that commands read. */
export type CommandPolicy = {
  readonly access: {
    readonly owners: ReadonlySet<string>;
    readonly allowFrom: ReadonlySet<string>;
    readonly dmPolicy: string;
    readonly groupPolicy: string;
    readonly allowGroups: ReadonlySet<string>;
  };
  readonly dmScope: DmScope;
  readonly identityLinks: IdentityLinks;
  readonly timeZone: string;
  /** Absent: no plugins. */
  readonly pluginCommands?: {
    list(): readonly { readonly plugin: string; readonly part: PluginCommand }[];
  };
};

/** An agent that may be chosen. */
export type KnownAgent = {
  readonly id: string;
  readonly name: string;
  readonly specialty?: string | undefined;
};

/** The dependencies that a chat command may use. */
export type CommandDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly policy: CommandPolicy;
  /** Returns the context window of the named model, tokens. */
  contextWindow(model: string): number;
  readonly models: Pick<Models, 'nameFor' | 'isKnown' | 'names'>;
  /** The configured budgets. */
  readonly budgets: Pick<BudgetRules, 'limitsOf'>;
  /** Returns how long an agent's model thinks unless the conversation has its own level. */
  agentReasoning(agentId: string): ReasoningLevel;
  /** Returns what answers on a channel show unless the conversation has chosen otherwise. */
  displayOn(channel: string): Required<DisplayChoice>;
  /** Returns the hooks of this process. */
  hooks(): readonly HookState[];
  /** The agents that run. */
  readonly agents: readonly KnownAgent[];
  /** Returns the name that an agent calls itself. */
  agentName(id: string): string;
};

/** A command as defined in its file. `Input` and `Facts` are plain data. */
export type CommandDefinition<Request, Input, Facts> = {
  readonly name: string;
  /** Words that may follow the name; absent when none may. */
  readonly usage?: string;
  /** One line for /help and the network's own command menu (3 to 100 characters). */
  readonly menu: TextKey;
  /** `lane`: runs in its lane's order, after the messages sent before it are answered. Absent: immediately. */
  readonly order?: 'lane';
  /** Everybody may use part of it, so /help shows it to all. */
  readonly isForAll?: true;
  /** The answer to a sender who may not use it; by default that administrators and owners may. */
  readonly denial?: TextKey;
  /**
   * Locks what `apply` needs besides its account and its lane, together with those two, through `lockCommand`. Returns
   * the input for `apply`.
   */
  lock?(tx: StepTx, place: CommandPlace, input: Input): Promise<Input>;
  /** A pairing or link code may follow the name, so its words aren't stored. */
  readonly mayHaveCode?: true;
  /** An owner may send it in a group that isn't answered. */
  readonly isForAnyPlace?: true;
  /** With `order: 'lane'`: it ends the active run instead of waiting for it. */
  readonly abortsRun?: true;
  /** With `order: 'lane'`: a run of this kind does the work, and `apply` isn't called. */
  readonly begins?: CommandStep['begins'];
  /** Parses the words after the name; returns the order of another command if they mean that one. Pure. */
  parse(words: string): Request | Problem | Order;
  /** Judges the sender. `request` is absent where the words don't matter or can't be parsed. Pure. */
  right(asker: Asker, request?: Request): Right;
  /** Looks up what the transaction needs; may read the store, changes nothing. */
  load(deps: CommandDeps, call: CommandCall, request: Request): Input | Promise<Input>;
  /** Makes the change, in the transaction that accepts the event (with `lane`: the one that claims the lane). */
  apply(tx: StepTx, scene: CommandScene, input: Input): Promise<Facts>;
  /** Returns the answer. Pure. */
  say(facts: Facts, texts: ChatTexts): string;
  /** Whether it turned out that the sender isn't allowed to do it. */
  isRefused?(facts: Facts): boolean;
};

/** A command of any kind, for the list and for the transaction. */
export interface ChatCommand extends CommandStep {
  readonly usage: string;
  readonly menu: TextKey;
  readonly order: 'now' | 'lane';
  readonly isForAll: boolean;
  readonly mayHaveCode: boolean;
  readonly isForAnyPlace: boolean;
  readonly abortsRun: boolean;
  /** Judges what a sender may do with the command, regardless of its words. */
  right(asker: Asker): Right;
  read(words: string): Order;
  /** Returns an order that only tells the sender who may use the command. */
  deny(): Order;
}

/** A command with its words, ready to be looked up. */
export type Order = {
  readonly command: ChatCommand;
  readonly request?: unknown;
  readonly problem?: Problem;
  /** It may be for another bot: in a group it counts only in a message that addresses this one, or never. */
  readonly inGroups?: 'called' | 'never';
  right(asker: Asker): Right;
  /** Returns the input of the command's step. */
  load(deps: CommandDeps, call: CommandCall): Promise<unknown>;
};

type LoadResult<Input> = { readonly problem: Problem; readonly isRefused?: true } | { readonly input: Input };

/** Hides the types of a command's request, input and facts, so that commands fit into one list. */
export function chatCommand<Request extends object, Input, Facts>(
  definition: CommandDefinition<Request, Input, Facts>,
): ChatCommand & { orderOf(request: Request): Order } {
  const { name, usage = '', menu, order = 'now', isForAll = false, abortsRun = false } = definition;
  const { mayHaveCode = false, isForAnyPlace = false } = definition;
  const { lock, begins, denial = 'commandForAdmins' } = definition;
  const withProblem = (loaded: Extract<LoadResult<Input>, { readonly problem: Problem }>): Order => {
    const { problem } = loaded;
    return { command, problem, right: (asker) => definition.right(asker), load: async () => loaded };
  };
  const orderOf = (request: Request): Order => ({
    command,
    request,
    right: (asker) => definition.right(asker, request),
    load: async (deps, call): Promise<LoadResult<Input>> => ({
      input: await definition.load(deps, call, request),
    }),
  });
  const command: ChatCommand = {
    ...{ name, usage, menu, order, isForAll, mayHaveCode, isForAnyPlace, abortsRun },
    ...(lock && {
      lock: async (tx, place, input) => {
        const loaded = input as LoadResult<Input>;
        return 'problem' in loaded ? loaded : { input: await lock(tx, place, loaded.input) };
      },
    }),
    ...(begins && { begins }),
    right: (asker) => definition.right(asker),
    read: (words) => {
      const read = definition.parse(words);
      if (isOrder(read)) return read;
      return isProblem(read) ? withProblem({ problem: read }) : orderOf(read);
    },
    deny: () => withProblem({ problem: { problem: denial, values: { name } }, isRefused: true }),
    run: async (tx, scene, input) => {
      // Made by this command's own `load`, on the other thread.
      const loaded = input as LoadResult<Input>;
      if ('problem' in loaded) {
        const { problem, isRefused = false } = loaded;
        return { text: fillText(tx.texts[problem.problem], problem.values), isRefused };
      }
      const facts = await definition.apply(tx, scene, loaded.input);
      return { text: definition.say(facts, tx.texts), isRefused: definition.isRefused?.(facts) ?? false };
    },
  };
  return Object.assign(command, { orderOf });
}

function isProblem(read: object): read is Problem {
  return 'problem' in read;
}

function isOrder(read: object): read is Order {
  return 'command' in read;
}

/** A `load` for commands whose step needs only the request. */
export function asRequested<Request>(_deps: CommandDeps, _call: CommandCall, request: Request): Request {
  return request;
}

/** Makes the `parse` of a command that takes no words. */
export function noWords(name: string): (words: string) => Record<never, never> | Problem {
  return (words) => (words === '' ? {} : { problem: 'commandTakesNoText', values: { name } });
}

/** A `right` for owners and administrators in groups; in a direct chat everybody is allowed. */
export function adminsInGroups({ chat, authority, isAdmin }: Asker): Right {
  return chat === 'dm' || authority === 'owner' || isAdmin === true ? 'allowed' : 'denied';
}

/** A `right` for owners, and for administrators in their groups. */
export function ownersAndAdmins({ chat, authority, isAdmin }: Asker): Right {
  return authority === 'owner' || (chat === 'group' && isAdmin === true) ? 'allowed' : 'denied';
}

/** A `right` for everybody who may write at all. */
export function anyone(): Right {
  return 'allowed';
}
