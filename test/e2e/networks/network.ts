/** A network as the fault tests use it: the same faults on each, every one with its own controls. */
import type { ChannelName, Stage, StageNetwork } from '../stage.ts';

export type Network = {
  /** Its name in the titles of the tests. */
  readonly name: string;
  readonly channel: ChannelName;
  /** The network to open the stage with. */
  readonly part: StageNetwork;
  readonly outages: readonly [Outage, ...Outage[]];
  readonly sendFaults: readonly SendFault[];
  /** What people write while Parley isn't running either waits for the next start, or is lost and reported as a gap. */
  readonly whileDown: 'kept' | 'lost';
  /** Resolves when nothing that a killed process began can still take messages. */
  untilLeft?(stage: Stage): Promise<void>;
  /** Ways in which a connection ends abruptly; the network itself stays available throughout. */
  readonly cuts: readonly Cut[];
  /** The bot gets another token, which the next start of Parley uses; the old one is rejected. */
  renewToken?(stage: Stage): Promise<void> | void;
  handsOf(stage: Stage): Hands;
};

/** The network is up, but not for us. What people write meanwhile isn't lost to them. */
export type Outage = {
  /** Continues the sentence that starts with the name of the network. */
  readonly what: string;
  readonly isInLongRunsOnly?: boolean;
  /** What the page says if Parley starts meanwhile. */
  readonly shown: RegExp;
  begin(stage: Stage): Promise<void> | void;
  end(stage: Stage): Promise<void> | void;
};

export type Cut = (stage: Stage) => Promise<void> | void;

/** One way in which sending an answer goes wrong, and what must follow. */
export type SendFault = {
  /** Continues the sentence that starts with the name of the network. */
  readonly what: string;
  readonly isInLongRunsOnly?: boolean;
  /** The next message that Parley sends runs into it. */
  arm(stage: Stage): void;
  /** Ends a fault that would otherwise persist, once the answer has run into it. */
  lift?(stage: Stage): Promise<void> | void;
  /** `unknown` and `failed`: recorded as such, reported to the agent, and never repeated. */
  readonly fate: 'sent' | 'unknown' | 'failed';
  /** How often the answer is in the chat at the end. */
  readonly stands: 0 | 1;
  /** How many calls were made to send it. */
  readonly calls: number;
};

export type Hands = {
  /** Returns how many calls so far sent or changed a message with this text, whatever became of them. */
  callsWith(text: string): number;
  /** Every sign of life is rejected from now on: typing, drafts, receipts. Returns how many previews were tried. */
  refuseSignsOfLife(): () => number;
  /** Somebody sends a file that the network then fails to serve. */
  sendsLostFile(id: number, text: string): void;
  /** Whatever people do inside `act` is delivered twice, and in reverse order. */
  inDisorder(act: () => void): void;
  /** The latest `count` events are delivered again. */
  redeliver(count: number): void;
  /** Unreadable events arrive, each with `kept-<n>` in it. Returns those marks. */
  sendsPoison(): Promise<readonly string[]>;
};

/** Nested deeper than any reader should follow. */
/** More values than any honest event contains, in 150 kB. */
export const tooMany = Array.from({ length: 50_001 }, () => ({}));

export function nested(depth: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level++) value = { reply_to_message: value };
  return value;
}
