/**
 * Decides which browsers are signed in. The row in the store is checked at each request and, for open sockets, twice
 * a second, so an end applies in every process and after every restart. A cookie is a random secret; the store has
 * its hash, keyed with the access token, so a new token ends every sign-in.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { stripText } from '../logging/redaction.ts';
import type { Store } from '../store/base/command.ts';
import { newRowId } from '../store/base/keys.ts';
import {
  endSignIns,
  findSignIn,
  maxSignIns,
  openSignIn,
  readSignIns,
  type SignIn,
  touchSignIn,
} from '../store/sign-ins/sign-ins.ts';
import { withinPatience } from './readiness.ts';

export type SignInStore = Pick<Store, 'read' | 'write' | 'writeAlong' | 'version'>;

export interface SignIns {
  /** Signs a browser in and returns its cookie's value. Throws what the store throws. */
  open(userAgent: string | undefined): Promise<{ readonly value: string; readonly maxAgeS: number }>;
  find(cookie: string): Promise<FoundSignIn>;
  /** Lists the sign-ins, most recently seen first. Throws what the store throws. */
  list(): Promise<readonly SignIn[]>;
  /**
   * Ends one sign-in, or all but one, and returns the ids of those that ended. If the store can't be written, this throws, and
   * a sign-in named by its id is ended in this process, and in the store as soon as that works.
   */
  end(which: { readonly id: string } | { readonly allBut?: string }): Promise<readonly string[]>;
  /** Finds the sign-ins in use that have ended elsewhere. Returns whether any has an open socket. */
  look(): Promise<boolean>;
}

export type FoundSignIn =
  | { readonly kind: 'found'; readonly id: string }
  | { readonly kind: 'nobody' }
  /** The store can't be read, and this process doesn't know the cookie. */
  | { readonly kind: 'unknown' };

export type SignInsDeps = {
  readonly token: string;
  readonly store: SignInStore;
  readonly clock: Clock;
  readonly log: Log;
  /** The sign-ins of the open sockets. */
  inUse(): Iterable<string>;
  /** Called for each request with a cookie. */
  onUse(): void;
  /** Called for each sign-in that has ended, here or elsewhere. */
  onEnd(id: string): void;
};

const lifetimeMs = 30 * 24 * 60 * 60 * 1000;
const secretBytes = 32;
/** How stale "last seen" may be, ms. */
const touchMs = 60_000;
/** How long a request waits for the database before this process decides from what it remembers, ms. */
const patienceMs = 2_000;

/** Returns a name for an access token that reveals nothing about it. */
export function issuerOf(token: string): string {
  return createHmac('sha256', token).update('parley sign-in issuer v1').digest('base64url').slice(0, 22);
}

function listOf({ store, clock }: SignInsDeps, issuer: string): Promise<readonly SignIn[]> {
  return store.read(readSignIns, { issuer, at: clock.now() });
}

function isLiving(signIn: SignIn | undefined, now: number): signIn is SignIn {
  return signIn !== undefined && signIn.expiresAt > now;
}

function hashUnder(token: string): (secret: string) => string {
  const key = createHmac('sha256', token).update('parley sign-in key v1').digest();
  return (secret) => createHmac('sha256', key).update(secret).digest('base64url');
}

export function createSignIns(deps: SignInsDeps): SignIns {
  const { store, clock, log } = deps;
  const issuer = issuerOf(deps.token);
  const hashOf = hashUnder(deps.token);
  const known = createKnown(deps);
  const living = createLiving(deps, issuer);
  /** Ended here, but not in the store yet. */
  const ending = new Set<string>();

  const forget = (id: string) => {
    known.forget(id);
    deps.onEnd(id);
  };
  const judge = (signIn: SignIn | undefined): FoundSignIn => {
    const isFound = isLiving(signIn, clock.now()) && !ending.has(signIn.id);
    return isFound ? { kind: 'found', id: signIn.id } : { kind: 'nobody' };
  };
  return {
    list: () => listOf(deps, issuer),
    open: async (userAgent) => {
      const [value, at] = [randomBytes(secretBytes).toString('base64url'), clock.now()];
      await store.write(openSignIn, {
        ...{ id: newRowId(), secretHash: hashOf(value), issuer, at },
        ...{ browser: describeBrowser(userAgent), expiresAt: at + lifetimeMs },
      });
      return { value, maxAgeS: lifetimeMs / 1000 };
    },
    find: async (cookie) => {
      deps.onUse();
      const secretHash = hashOf(cookie);
      try {
        const reading = store.read(findSignIn, { secretHash, at: clock.now() });
        const signIn = await withinPatience(reading, patienceMs);
        if (signIn !== undefined) known.remember(secretHash, signIn);
        return judge(signIn);
      } catch (error) {
        log.debug({ error }, 'sign-in.not-read');
        return known.get(secretHash) === undefined ? { kind: 'unknown' } : judge(known.get(secretHash));
      }
    },
    end: async (which) => {
      if ('id' in which) {
        ending.add(which.id);
        forget(which.id);
      }
      const ended = await store.write(endSignIns, { issuer, ...which });
      for (const id of ended) forget(id);
      if ('id' in which) ending.delete(which.id);
      return ended;
    },
    look: async () => {
      for (const id of ending) {
        await store.write(endSignIns, { issuer, id });
        ending.delete(id);
      }
      for (const id of await living.without([...deps.inUse(), ...known.ids()])) forget(id);
      return [...deps.inUse()].length > 0;
    },
  };
}

/** Finds the sign-ins that have ended. Reads the store only if it has changed, if it can tell. */
function createLiving(deps: SignInsDeps, issuer: string) {
  let living: readonly SignIn[] = [];
  let version: number | undefined;
  const ended = (ids: readonly string[]) => {
    const now = deps.clock.now();
    return ids.filter((id) => !living.some((one) => one.id === id && isLiving(one, now)));
  };
  return {
    without: async (ids: readonly string[]): Promise<readonly string[]> => {
      if (ids.length === 0) return [];
      const read = deps.store.version?.();
      // A sign-in that isn't in the list may be new.
      if (read === undefined || read !== version || ended(ids).length > 0)
        living = await listOf(deps, issuer);
      version = read;
      return ended(ids);
    },
  };
}

/** Remembers recently found sign-ins by hash: they stay signed in while the store is unreachable. */
function createKnown({ store, clock }: Pick<SignInsDeps, 'store' | 'clock'>) {
  const known = new Map<string, SignIn>();
  return {
    get: (hash: string) => known.get(hash),
    ids: () => [...known.values()].map(({ id }) => id),
    forget: (id: string) => {
      for (const [hash, signIn] of known) if (signIn.id === id) known.delete(hash);
    },
    remember: (hash: string, signIn: SignIn) => {
      known.delete(hash);
      const oldest = known.keys().next();
      if (known.size >= maxSignIns && !oldest.done) known.delete(oldest.value);
      known.set(hash, signIn);
      const at = clock.now();
      if (at - signIn.lastSeenAt >= touchMs) store.writeAlong(touchSignIn, { id: signIn.id, at });
    },
  };
}

const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bHeadlessChrome\/|\bChrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const systems: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];
/** Characters read of the user agent, and shown of an unknown one. */
const maxRead = 512;
const maxShown = 60;

/** Returns a browser's approximate name, such as "Firefox on Linux". Safe to show, whatever was sent. */
export function describeBrowser(userAgent: string | undefined): string {
  const text = (userAgent ?? '').slice(0, maxRead);
  const browser = nameIn(browsers, text);
  const system = nameIn(systems, text);
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`;
  const shown = stripText(text).replace(/\s+/g, ' ').trim().slice(0, maxShown).toWellFormed();
  return shown === '' ? 'Unknown browser' : shown;
}

function nameIn(names: readonly (readonly [RegExp, string])[], text: string): string | undefined {
  return names.find(([pattern]) => pattern.test(text))?.[1];
}

/** The one-time codes of sign-in links. Each opens one session within its lifetime. */
export interface SignInCodes {
  /** Creates a code. `by`: the sign-in that requests it. */
  issue(by?: string): string;
  /** Redeems a code: the result is defined exactly once for an issued code that hasn't expired. */
  redeem(code: string): RedeemedCode | undefined;
}

export type RedeemedCode = {
  /** The sign-in that requested the code, which must not have ended; undefined for the holder of the access token. */
  readonly by: string | undefined;
  /** Makes the code valid again, when it didn't open a session. */
  giveBack(): void;
};

const codeLifetimeMs = 15 * 60 * 1000;
const maxOpenCodes = 20;

export function createSignInCodes(clock: Clock): SignInCodes {
  // Keyed by hash, so that the time of a lookup doesn't depend on the code's characters.
  const open = new Map<string, { readonly by: string | undefined; readonly expiresAt: number }>();
  return {
    issue: (by) => {
      const code = randomBytes(24).toString('base64url');
      const oldest = open.keys().next();
      if (open.size >= maxOpenCodes && !oldest.done) open.delete(oldest.value);
      open.set(hashOf(code), { by, expiresAt: clock.now() + codeLifetimeMs });
      return code;
    },
    redeem: (code) => {
      const hash = hashOf(code);
      const found = open.get(hash);
      open.delete(hash);
      if (found === undefined || found.expiresAt <= clock.now()) return undefined;
      return { by: found.by, giveBack: () => void open.set(hash, found) };
    },
  };
}

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}
