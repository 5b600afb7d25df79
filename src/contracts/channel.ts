import type { z } from 'zod';
import type { Acceptance } from './acceptance.ts';
import type { Capabilities } from './capabilities.ts';
import type {
  ChannelTool,
  ChecksAbility,
  CommandsAbility,
  LoginAbility,
  LookupAbility,
  MediaAbility,
  PreviewAbility,
  TypingAbility,
} from './channel-abilities.ts';
import type { Clock } from './clock.ts';
import type { InboundEnvelope } from './envelope.ts';
import type { AccountId, ChannelId, ConversationId, EventKey, MessageId } from './ids.ts';
import type { Log } from './log.ts';
import type { Outbound, SendResult } from './outbound.ts';
import type { RouteHost } from './route-host.ts';
import type { TimelineReader } from './timeline.ts';

/** The export `channel` of a channel folder's `index.ts`. */
export interface ChannelDefinition<Config = unknown> {
  readonly id: ChannelId;
  readonly capabilities: Capabilities;
  readonly configSchema: z.ZodType<Config>;
  /** Tools of its own, in runs whose answers go to it; absent if it has none. */
  readonly tools?: readonly ChannelTool[];
  /** Creates the adapter; does no I/O. */
  create(config: Config, deps: ChannelDeps): ChannelAdapter;
}

/** The host services given to an adapter. */
export type ChannelDeps = {
  readonly log: Log;
  readonly clock: Clock;
  /** Cheaper than the platform's own for short calls; otherwise the same. */
  readonly fetch: typeof globalThis.fetch;
  /** The channel's own folder in the data folder; it exists. */
  readonly dataDir: string;
  /** Accepts a channel's HTTP and WebSocket routes; absent in processes that serve none. */
  readonly routes?: RouteHost;
  /** A conversation's messages; for session-bound channels, which show them again on reconnect. */
  readonly timeline?: TimelineReader;
};

/** The connection to one bot account. Everything else a network can do is an ability. */
export interface ChannelAdapter {
  /**
   * Finds out which account this is. Called once, before `start`; `send` works from then on.
   * Throws ParleyError `channel_unauthorised` (try again slowly) or `channel_unavailable` (try again, after
   * `retry.afterMs` if the network specifies it).
   */
  identify(signal: AbortSignal): Promise<BotAccount>;
  /**
   * Begins to receive. Called only in the process that holds the account's lease. Resolves when
   * receiving has begun; later trouble goes to `intake.trouble`.
   */
  start(intake: Intake): Promise<void>;
  /**
   * Stops receiving; resolves when no further `accept` will be called. Safe to call twice, and during a start, whose
   * connections end too.
   */
  stop(): Promise<void>;
  /**
   * Makes one platform call. Expected failures are values; it throws only for its own faults.
   * An aborted signal ends the wait, not what the platform has already accepted: the result is then `unknown`.
   */
  send(outbound: Outbound, signal: AbortSignal): Promise<SendResult>;

  readonly typing?: TypingAbility;
  readonly preview?: PreviewAbility;
  readonly media?: MediaAbility;
  readonly commands?: CommandsAbility;
  readonly login?: LoginAbility;
  readonly lookup?: LookupAbility;
  readonly checks?: ChecksAbility;
}

/** A channel as listed in main.ts. */
export type ChannelEntry = {
  readonly id: ChannelId;
  /** Loads the channel's code; only channels that are on are loaded. */
  load(): Promise<ChannelDefinition>;
  /** For channels on this machine: the person who uses them. */
  readonly localPeer?: string;
  /** The setting that enables it, when it is off by default. */
  readonly needs?: string;
  /** The names of its tools, known before it is loaded; absent if it has none. */
  readonly tools?: readonly string[];
  /** Loads what `parley onboard` asks for; absent for channels that need nothing. */
  setUp?(): Promise<ChannelSetUp>;
};

/** How to set up a network, as `parley onboard` asks for it. */
export type ChannelSetUp = {
  readonly label: string;
  readonly hint: string;
  /** Where a person gets the requested values. */
  readonly how: string;
  readonly fields: readonly SetUpField[];
  /** An owner's permanent id on the network. */
  readonly ownerId: { readonly example: string; readonly form: RegExp };
};

/** One variable that a network needs. */
export type SetUpField = {
  readonly variable: string;
  /** Absent: generated instead of asked for. */
  readonly question?: string;
  readonly isSecret?: boolean;
  readonly byDefault?: string;
  make?(): string;
};

/** A connection whose account is identified, so that it can send. */
export type HostedChannel = {
  /** The account's name in the configuration; absent for the unnamed one. */
  readonly accountName?: string;
  readonly definition: ChannelDefinition;
  readonly adapter: ChannelAdapter;
  readonly account: BotAccount;
  /** Absent where the network sets no limit for a bot as a whole. */
  readonly pace?: CallPace;
};

/** Divides what a network allows one account in all conversations: deliveries first, signs of life from what is left. */
export interface CallPace {
  /**
   * Resolves with true when it is a delivery's turn: at once, or after a refusal in the order of the calls; with false
   * if that takes too long.
   */
  turn(limitMs: number, signal: AbortSignal): Promise<boolean>;
  /** Says whether a preview or typing may be shown now, and counts it. */
  mayShow(): boolean;
  /** The network has refused a call because there were too many: for a while, deliveries take turns and nothing is shown. */
  refused(): void;
}

/** Our login on a channel. `name` can change (`Intake.renamed`), so read it when it's needed; the id never changes. */
export type BotAccount = { readonly id: AccountId; readonly name: string };

/** The intake as an adapter sees it. Bound to one account and its lease. */
export interface Intake {
  /** The cursor stored with the last accepted batch; undefined on the first start. */
  readonly cursor: string | undefined;
  /** When the account was last being received for, ms since the epoch, to about 10 s; absent on the first start. */
  readonly heldUntil?: number | undefined;
  /**
   * The last event of each conversation that was accepted with no gap before it. For networks whose
   * history is read conversation by conversation. Decimal numbers as text: a longer one is later.
   */
  readonly anchors: ReadonlyMap<ConversationId, string>;
  /**
   * Stores every event and the cursor in one transaction and resolves after its commit; only then
   * may the platform be acknowledged. Rejects with ParleyError `store_unavailable`, `store_full`
   * (keep the cursor, try again) or `stale_epoch` (another process has the account: stop).
   */
  accept(batch: InboundBatch): Promise<readonly Acceptance[]>;
  /**
   * Reports the state of receiving: undefined when the network has answered and all is well. Shown in the log, the
   * page, `/status` and `/readyz`. After trouble with `isOver`, or `unauthorised`, the adapter may end: it is
   * stopped and restarted 1, 5, 15 minutes later, then every 15 (`slowRetryMs`). With the code `server-changed` it is
   * replaced by a new adapter, which identifies the account again.
   */
  trouble(problem: ChannelTrouble | undefined): void;
  /** Reports the name that people now use for the account; commands (`/status@name`) are matched against it. */
  renamed(name: string): void;
  /** Reports that messages may have been missed and can't be fetched. Logged, and reported to the owner. */
  gap(gap: ChannelGap): void;
}

/** A stretch of time whose messages may be lost for good. */
export type ChannelGap = {
  /** Absent: the entire account. */
  readonly conversation?: ConversationId;
  /** When the gap began, ms since the epoch, as far as it is known. */
  readonly since?: number;
  /** In English, for the log. */
  readonly reason: string;
  readonly code?: GapCode;
};

/** Reasons why messages can't be fetched, for texts in the owner's language; absent: the reason is shown as it is. */
export type GapCode =
  | 'too-old'
  | 'no-history'
  | 'history-refused'
  | 'not-kept'
  | 'cut-off'
  | 'lost'
  /** The network's encryption failed; the sender's app sends it again if it can. */
  | 'undecrypted'
  /** The sender has another key, which somebody has to trust before the network delivers what they write. */
  | 'identity-changed';

/** Events that are accepted together with the cursor after them. */
export type InboundBatch = {
  readonly events: readonly InboundEnvelope[];
  /** Events whose mapping threw; stored raw as `refused(unreadable)`, so that the cursor can pass. */
  readonly unreadable?: readonly {
    readonly eventKey: EventKey;
    readonly raw: string;
    readonly problem: string;
    /** The message's id, if that could be read; people find the event under it. */
    readonly messageId?: MessageId;
    /** Cause, for the owner and `why`. Absent: they are only told that it couldn't be read. */
    readonly gap?: ChannelGap;
  }[];
  /** The platform's read position after this batch; absent: unchanged. */
  readonly cursor?: string;
  /** Anchors that move in the same transaction, only forward and only past accepted events. */
  readonly anchors?: ReadonlyMap<ConversationId, string>;
};

/** Reasons why a channel doesn't receive, for texts in the owner's language; absent: the detail is shown as it is. */
export type TroubleCode =
  | 'no-answer'
  | 'refused'
  | 'bad-credentials'
  | 'conflict'
  | 'captcha'
  | 'settings'
  | 'server-changed'
  | 'not-stored'
  | 'internal';

/** A problem with receiving, as an adapter reports it. */
export type ChannelTrouble = {
  readonly kind:
    | 'unreachable'
    | 'unauthorised'
    | 'conflict'
    /** The network asks for proof of being human (a captcha). The detail says what to do. */
    | 'challenge';
  /** In English, for the log, the page and the command line. */
  readonly detail: string;
  readonly code?: TroubleCode;
  /** When the adapter itself tries again, ms since the epoch; absent if that is within seconds. */
  readonly nextTryAt?: number;
  /** The channel works, but something is missing: it stays on, and the detail is shown with it. */
  readonly isDegraded?: true;
  /** The adapter has given up and has to be restarted, slowly. Always the case for `unauthorised`. */
  readonly isOver?: boolean;
};
