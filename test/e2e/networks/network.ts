/** A network as the fault tests play it: the same faults on each, every one with hands of its own. */
import type { ChannelName, Stage, StageNetwork } from '../stage.ts';

export type Network = {
  /** As it stands in the names of the tests. */
  readonly name: string;
  readonly channel: ChannelName;
  /** What the stage is opened with. */
  readonly part: StageNetwork;
  readonly outages: readonly [Outage, ...Outage[]];
  readonly sendFaults: readonly SendFault[];
  /** What people write while no process of ours runs waits for the next one, or is lost and told as a gap. */
  readonly whileDown: 'kept' | 'lost';
  /** Resolves when nothing that a killed process began takes messages any more. */
  untilLeft?(stage: Stage): Promise<void>;
  /** How a connection ends at once, each in another way; the network itself is there all the while. */
  readonly cuts: readonly Cut[];
  /** The bot gets another token, which the next start of Parley has; that of before is refused. */
  renewToken?(stage: Stage): Promise<void> | void;
  handsOf(stage: Stage): Hands;
};

/** The network is there, but not for us. What people write meanwhile is not lost to them. */
export type Outage = {
  /** Reads on from the name of the network. */
  readonly what: string;
  readonly isInLongRunsOnly?: boolean;
  /** What the page says when Parley starts meanwhile. */
  readonly shown: RegExp;
  begin(stage: Stage): Promise<void> | void;
  end(stage: Stage): Promise<void> | void;
};

export type Cut = (stage: Stage) => Promise<void> | void;

/** One way in which the sending of an answer goes wrong, and what must come of it. */
export type SendFault = {
  /** Reads on from the name of the network. */
  readonly what: string;
  readonly isInLongRunsOnly?: boolean;
  /** The next message that Parley sends meets it. */
  arm(stage: Stage): void;
  /** Ends what would go on otherwise, once the answer has met it. */
  lift?(stage: Stage): Promise<void> | void;
  /** `unknown`: recorded as such, told to the agent, and never repeated. */
  readonly fate: 'sent' | 'unknown';
  /** How often the answer stands in the end. */
  readonly stands: 0 | 1;
  /** How many calls there were to send it. */
  readonly calls: number;
};

export type Hands = {
  /** The calls so far that send or change a message with this text, whatever became of them. */
  callsWith(text: string): number;
  /** Every sign of life is refused from now on: typing, drafts, receipts. Returns how many previews were tried. */
  refuseSignsOfLife(): () => number;
  /** Somebody sends a file that the network then does not give. */
  sendsLostFile(id: number, text: string): void;
  /** What `act` makes people do is delivered twice, and backwards. */
  inDisorder(act: () => void): void;
  /** The latest `count` events are delivered once more. */
  redeliver(count: number): void;
  /** What nobody can read arrives; `kept-<n>` stands in each. Returns the marks. */
  sendsPoison(): Promise<readonly string[]>;
};

/** Nested deeper than any reader should follow. */
/** More values than any honest event has, in 150 kB. */
export const tooMany = Array.from({ length: 50_001 }, () => ({}));

export function nested(depth: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level++) value = { reply_to_message: value };
  return value;
}
