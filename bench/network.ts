/** A chat network as the bench meets it: people who write to the bot in private, and what it says to them. */
export type Network = {
  readonly name: NetworkName;
  /** Environment by which a bot finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends as the person of this number; returns when, ms. */
  say(person: number, text: string): number;
  /** Messages that `act` sends reach the bot as fast as the network can bring it. */
  atOnce(act: () => void): void;
  /** Visits each message that the bot sends from now on, in order, until the visitor returns something. */
  follow<T>(visit: (said: Said) => T | undefined, deadlineMs: number): Promise<T>;
  /** The bot's messages as the person sees them, oldest first. */
  answersTo(person: number): readonly string[];
  /** Resolves when what is said now is not lost, however long it takes to be read. */
  untilReachable(): Promise<void>;
  /** Resolves when the bot has taken all that was said, and waits for more. */
  untilQuiet(): Promise<void>;
  /** The bot listens there; for a network that calls it. */
  meets(url: string): void;
  close(): Promise<void>;
};

export const networkNames = ['telegram', 'discord', 'signal'] as const;
export type NetworkName = (typeof networkNames)[number];
export const titleOf = { telegram: 'Telegram', discord: 'Discord', signal: 'Signal' } as const;

/** A message of the bot and when it had arrived, ms on the clock of `now`. */
export type Said = { readonly person: number; readonly text: string; readonly at: number };

/** How long a bot may take over anything before the run is given up. */
export const patienceMs = 20_000;

/** The next message to the person that holds the text. */
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

/** A local platform: a list of calls that grows, and a way to wait for it. */
type Journal<Call> = {
  readonly calls: readonly Call[];
  waitFor<T>(probe: () => T | undefined | false, deadlineMs?: number): Promise<T>;
};

/** `read`: what a call says; 'open' while that is not answered; undefined for every other call. */
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

/** A person per number, made when first asked for. */
export function lazily<T>(make: (person: number) => T): (person: number) => T {
  const made = new Map<number, T>();
  return (person) => {
    const known = made.get(person);
    if (known !== undefined) return known;
    const one = make(person);
    made.set(person, one);
    return one;
  };
}
