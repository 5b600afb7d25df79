/** Signal on a stage: a local signal-cli-rest-api whose webhook follows Parley from start to start. */
import { randomBytes } from 'node:crypto';
import { type SignalServer, startSignalServer } from '../platforms/signal/server.ts';
import type { Person as SignalPerson } from '../platforms/signal/types.ts';
import { commandIn, type Person } from './person.ts';

export type SignalSide = {
  readonly server: SignalServer;
  readonly environment: Readonly<Record<string, string>>;
  /** Parley listens there from now on. */
  started(url: string): void;
  person(id: number): Person;
  /** The person with that id as the platform knows them. */
  user(id: number): SignalPerson;
  close(): Promise<void>;
};

type SignalSideOptions = { readonly mode?: 'json-rpc' | 'normal'; readonly now?: () => number };

/** In `normal` mode, messages are polled for, and there is no webhook. `now`: the platform's clock. */
export async function openSignalSide(options: SignalSideOptions = {}): Promise<SignalSide> {
  const server = await startSignalServer(options);
  const isPolled = options.mode === 'normal';
  const secret = randomBytes(24).toString('hex');
  const users = new Map<number, SignalPerson>();
  const user = (id: number): SignalPerson => {
    const known = users.get(id) ?? server.world.addPerson({ name: `Person ${id}`, number: null });
    users.set(id, known);
    return known;
  };
  // A post to a process that is dead by now is never answered, and nobody sends it again.
  let firstPost = 0;
  const isHeard = (text: string, { uuid }: SignalPerson) =>
    server.posts.some(
      ({ body, status }, index) =>
        body.includes(text) && body.includes(uuid) && (index < firstPost || status === 200),
    );
  return {
    server,
    environment: { SIGNAL_API_URL: server.url, SIGNAL_WEBHOOK_SECRET: secret },
    started: (url) => {
      firstPost = server.posts.length;
      if (isPolled) return;
      server.webhookUrl = `${url}/channels/signal/webhook/${secret}`;
    },
    user,
    person: (id) => {
      const said: string[] = [];
      const says = (text: string) => {
        said.push(text);
        server.people.writes({ from: user(id), text });
      };
      const standing = () => server.botMessages(user(id)).map(({ text }) => text);
      return {
        ...{ says, standing },
        presses: (label) => says(commandIn(standing(), label)),
        isHeard: () =>
          isPolled
            ? server.mailbox().waiting.length === 0
            : said.every((text) => isHeard(JSON.stringify(text), user(id))),
        close: () => undefined,
      };
    },
    close: () => server.close(),
  };
}

/** Returns the Signal of a stage, which must have been opened with it. */
export function signalOf({ signal }: { readonly signal: SignalSide | undefined }): SignalSide {
  if (signal === undefined) throw new Error('test error: the stage has no Signal');
  return signal;
}
