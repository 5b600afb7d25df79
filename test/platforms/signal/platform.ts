import type { People } from './people.ts';
import type { Account, Mode, Person, Place } from './types.ts';
import type { World } from './world.ts';

/** A typing indicator that a call set or removed. */
export type TypingSign = { readonly place: Place; readonly isOn: boolean; readonly at: number };

/** What the calls read and write. */
export type Platform = {
  mode: Mode;
  readonly release: '0.100' | 'head';
  readonly version: string;
  readonly world: World;
  readonly people: People;
  readonly now: () => number;
  readonly typing: TypingSign[];
  /** Sends of the account are refused with these tokens until a captcha is solved for one of them. */
  readonly challenges: Map<string, readonly string[]>;
  readonly captchas: { readonly token: string; readonly captcha: string }[];
  readonly links: { readonly uri: string; readonly deviceName: string; isUsed: boolean }[];
  /** Uuids of people who no longer have an account. */
  readonly unregistered: Set<string>;
  /** Whether people's devices answer sends with delivery receipts, as real ones do. */
  readonly hasDeliveryReceipts: boolean;
  /** How long a second of a poll's requested wait lasts, ms. */
  readonly secondMs: number;
  /** What happens on Signal once the call's answer is on its way. */
  readonly afterwards: (() => void)[];
  logLevel: string;
  /** Records that a call was accepted although it can't mean what its caller wants. */
  readonly note: (why: string) => void;
};

/** One call, as a handler sees it. */
export type Incoming = {
  readonly body: unknown;
  readonly query: Readonly<Record<string, string>>;
  /** The path segments after its name, decoded. */
  readonly parts: readonly string[];
  readonly number: string;
  /** Recipients, by uuid or number, that the test wants to fail. */
  readonly failing: Readonly<Record<string, string>>;
};

/** `body` undefined: none. Bytes are sent as they are. */
export type Reply = {
  readonly status: number;
  readonly body?: unknown;
  readonly bytes?: Uint8Array;
  readonly type?: string;
  readonly timestamp?: number;
};

export type Handler = (platform: Platform, call: Incoming) => Reply;

/** Returns who receives a message to a place, except for the account itself. */
export function recipientsIn(place: Place, account: Account): readonly Person[] {
  const people = 'group' in place ? place.group.members : [place.person];
  return people.filter(({ uuid }) => uuid !== account.uuid);
}
