import type { z } from 'zod';
import type { Acceptance } from './acceptance.ts';
import type { Capabilities } from './capabilities.ts';
import type {
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
import type { AccountId, ChannelId, ConversationId, EventKey } from './ids.ts';
import type { Log } from './log.ts';
import type { Outbound, SendResult } from './outbound.ts';
import type { RouteHost } from './route-host.ts';
import type { Sections } from './section.ts';
import type { TimelineReader } from './timeline.ts';

/** The export `channel` of a channel folder's `index.ts`. */
export interface ChannelDefinition<Config = unknown> {
  readonly id: ChannelId;
  readonly capabilities: Capabilities;
  readonly configSchema: z.ZodType<Config>;
  /** Makes the adapter; does no I/O. */
  create(config: Config, deps: ChannelDeps): ChannelAdapter;
}

/** The parts that the host gives to an adapter. */
export type ChannelDeps = {
  readonly log: Log;
  readonly clock: Clock;
  /** Cheaper than the platform's own for short calls; otherwise the same. */
  readonly fetch: typeof globalThis.fetch;
  /** A folder of the channel's own under the data folder; it exists. */
  readonly dataDir: string;
  /** Where a channel may put HTTP and WebSocket routes; absent in processes that serve none. */
  readonly routes?: RouteHost;
  /** A conversation's messages; for session-bound channels, which show it again on reconnect. */
  readonly timeline?: TimelineReader;
  /** Times what a channel does in one piece with what its network sent. */
  readonly sections?: Sections;
};

/** The connection to one bot account. Everything a network can do beyond this is an ability. */
export interface ChannelAdapter {
  /**
   * Finds out which account this is. Called once, before `start`; `send` works from here on.
   * Throws ParleyError `channel_unauthorised` (try again slowly) or `channel_unavailable` (try again, after
   * `retry.afterMs` where the network names it).
   */
  identify(signal: AbortSignal): Promise<BotAccount>;
  /**
   * Begins to receive. Called only in the process that holds the account's lease. Returns when
   * receiving has begun; later trouble goes to `intake.trouble`.
   */
  start(intake: Intake): Promise<void>;
  /**
   * Stops receiving; resolves when no further `accept` will be called. Safe to call twice, and during a start, whose
   * connections end too.
   */
  stop(): Promise<void>;
  /**
   * Makes one platform call. Expected failures are values; it throws only for faults in itself.
   * An aborted signal ends the wait, not what the platform already took: the result is then `unknown`.
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

/** A channel as main.ts lists it. */
export type ChannelEntry = {
  readonly id: ChannelId;
  /** Loads the channel's code; only channels that are on are loaded. */
  load(): Promise<ChannelDefinition>;
  /** For channels on this machine: the person who sits at them. */
  readonly localPeer?: string;
  /** The setting that enables it, when it is off by default. */
  readonly needs?: string;
  /** Loads what `parley onboard` asks for; absent for channels that need nothing. */
  setUp?(): Promise<ChannelSetUp>;
};

/** Setting a network up, as `parley onboard` asks for it. */
export type ChannelSetUp = {
  readonly label: string;
  readonly hint: string;
  /** Where a person gets what is asked for. */
  readonly how: string;
  readonly fields: readonly SetUpField[];
  /** An owner's permanent id on the network. */
  readonly ownerId: { readonly example: string; readonly form: RegExp };
};

/** One variable that a network needs. */
export type SetUpField = {
  readonly variable: string;
  /** Absent: not asked, but made. */
  readonly question?: string;
  readonly isSecret?: boolean;
  readonly byDefault?: string;
  make?(): string;
};

/** A connection that has said who it is, and so can send. */
export type HostedChannel = {
  /** As the configuration calls the account; absent for the one without a name. */
  readonly accountName?: string;
  readonly definition: ChannelDefinition;
  readonly adapter: ChannelAdapter;
  readonly account: BotAccount;
};

/** Our login on a channel. `name` can change (`Intake.renamed`), so it's read when it's needed; the id never does. */
export type BotAccount = { readonly id: AccountId; readonly name: string };

/** The intake as an adapter sees it. Bound to one account and its lease. */
export interface Intake {
  /** The cursor stored with the last accepted batch; undefined on the first start. */
  readonly cursor: string | undefined;
  /** Until when the account was last received for, ms since the epoch; absent on the first start. To about 10 s. */
  readonly heldUntil?: number | undefined;
  /**
   * Per conversation, the last event that was accepted with no gap before it. For networks whose
   * history is read conversation by conversation. Decimal numbers as text: the longer one is later.
   */
  readonly anchors: ReadonlyMap<ConversationId, string>;
  /**
   * Stores every event and the cursor in one transaction and resolves after its commit: only then
   * may the platform be acknowledged. Rejects with ParleyError `store_unavailable`, `store_full`
   * (keep the cursor, try again) or `stale_epoch` (another process has the account: stop).
   */
  accept(batch: InboundBatch): Promise<readonly Acceptance[]>;
  /**
   * Says how receiving goes: undefined when the network has answered and all is well. Shown in the log, the
   * page, `/status` and `/readyz`. After trouble with `isOver`, or `unauthorised`, the adapter may end: it is
   * stopped and started again, 1, 5, 15 minutes later, then every 15 (`slowRetryMs`). With the code `server-changed` a
   * new adapter takes its place, which asks for the account anew.
   */
  trouble(problem: ChannelTrouble | undefined): void;
  /** Says by which name people address the account now: commands (`/status@name`) are read by it. */
  renamed(name: string): void;
  /** Says that messages may have been missed and cannot be fetched. Logged, and told to the owner. */
  gap(gap: ChannelGap): void;
}

/** A stretch of time whose messages may be lost for good. */
export type ChannelGap = {
  /** The whole account when absent. */
  readonly conversation?: ConversationId;
  /** When the gap began, ms since the epoch, as far as it is known. */
  readonly since?: number;
  /** In English, for the log. */
  readonly reason: string;
  readonly code?: GapCode;
};

/** Reasons why messages can't be fetched, for texts in the owner's language; absent: the reason as it is. */
export type GapCode = 'too-old' | 'no-history' | 'history-refused' | 'not-kept' | 'cut-off' | 'lost';

/** Events that are accepted together with the cursor after them. */
export type InboundBatch = {
  readonly events: readonly InboundEnvelope[];
  /** Events whose mapping threw; stored raw as `refused(unreadable)`, so that the cursor can pass. */
  readonly unreadable?: readonly {
    readonly eventKey: EventKey;
    readonly raw: string;
    readonly problem: string;
  }[];
  /** Where the platform stands after this batch; kept as it is when absent. */
  readonly cursor?: string;
  /** Anchors that move in the same transaction. Each only forward, and only over what was accepted. */
  readonly anchors?: ReadonlyMap<ConversationId, string>;
};

/** Reasons why a channel doesn't receive, for texts in the owner's language; absent: the detail as it is. */
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
    /** The network wants a person to prove that they are one (a captcha). The detail says what to do. */
    | 'challenge';
  /** In English, for the log, the page and the command line. */
  readonly detail: string;
  readonly code?: TroubleCode;
  /** When the adapter itself tries again, ms since the epoch; absent where that is within seconds. */
  readonly nextTryAt?: number;
  /** The channel works with something missing: it stays on, and the detail is shown beside it. */
  readonly isDegraded?: true;
  /** The adapter has given up: it wants to be started again, slowly. `unauthorised` always does. */
  readonly isOver?: boolean;
};
