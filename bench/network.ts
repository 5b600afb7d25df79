/** A chat network as the benchmarks use it: people who write to the bot in private, and its messages to them. */
export type Network = {
  readonly name: NetworkName;
  /** Environment through which a bot finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends as the person of this number; returns when, ms. */
  say(person: number, text: string): number;
  /** Delivers the messages that `act` sends to the bot as fast as the network can. */
  atOnce(act: () => void): void;
  /** Visits each message that the bot sends from now on, in order, until the visitor returns something. */
  follow<T>(visit: (said: Said) => T | undefined, deadlineMs: number): Promise<T>;
  /** The bot's messages as the person sees them, oldest first. */
  answersTo(person: number): readonly string[];
  /** Resolves when messages said from now on aren't lost, however long it takes until they are read. */
  untilReachable(): Promise<void>;
  /** Resolves when the bot has taken all messages and waits for more. */
  untilQuiet(): Promise<void>;
  /** Sets the bot's address, for a network that calls it. */
  meets(url: string): void;
  close(): Promise<void>;
};

export const networkNames = ['telegram', 'discord', 'signal'] as const;
export type NetworkName = (typeof networkNames)[number];
export const titleOf = { telegram: 'Telegram', discord: 'Discord', signal: 'Signal' } as const;

/** A message from the bot and when it arrived, ms on the clock of `now`. */
export type Said = { readonly person: number; readonly text: string; readonly at: number };

/** How long a bot may take for anything before the run is given up. */
export const patienceMs = 20_000;

/** Resolves with the next message to the person that contains the text. */
export function botSays(
  network: Network,
  person: number,
  text: string,
  deadlineMs = patienceMs,
): Promise<Said> {
  return network.follow(
    (said) => (said.person === person && said.text.includes(text) ? said : undefined),
    deadlineMs,
  );
}

/** A local platform: a growing list of calls, and a way to wait for entries. */
type Journal<Call> = {
  readonly calls: readonly Call[];
  waitFor<T>(probe: () => T | undefined | false, deadlineMs?: number): Promise<T>;
};

/** Follows the calls. `read` returns a call's message, 'open' while it is unanswered, undefined for other calls. */
export function followCalls<Call>(
  journal: Journal<Call>,
  read: (call: Call) => Said | 'open' | undefined,
): Network['follow'] {
  return (visit, deadlineMs) => {
    let seen = journal.calls.length;
    return journal.waitFor(() => {
      for (; seen < journal.calls.length; seen++) {
        const call = journal.calls[seen];
        const said = call && read(call);
        if (said === 'open') return undefined;
        const found = said && visit(said);
        if (found !== undefined) {
          seen++;
          return found;
        }
      }
      return undefined;
    }, deadlineMs);
  };
}
