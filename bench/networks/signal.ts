import { startSignalServer } from '../../test/platforms/signal/server.ts';
import { now } from '../clock.ts';
import { followCalls, lazily, type Network, patienceMs } from '../network.ts';

const secret = 'a-secret-of-the-bench-0001';

/** signal-cli-rest-api in json-rpc mode, with its webhook. */
export async function startSignal(): Promise<Network> {
  const server = await startSignalServer({ now });
  const numbers = new Map<string, number>();
  const user = lazily((person) => {
    const made = server.world.addPerson({ name: `Person ${person}`, number: null });
    numbers.set(made.uuid, person);
    return made;
  });
  return {
    name: 'signal',
    environment: { SIGNAL_API_URL: server.url, SIGNAL_WEBHOOK_SECRET: secret },
    say: (person, text) => {
      const from = user(person);
      const at = now();
      server.people.writes({ from, text });
      return at;
    },
    atOnce: (act) => server.inOneWrite(act),
    follow: followCalls(server, (call) => {
      if (call.path !== '/v2/send') return undefined;
      const { recipients, message } = call.body as SendBody;
      const person = numbers.get(recipients[0] ?? '') ?? Number.NaN;
      return call.status === 0 ? 'open' : { person, text: message, at: call.at };
    }),
    answersTo: (person) => server.botMessages(user(person)).map(({ text }) => text),
    // Messages sent before a webhook exists are lost.
    untilReachable: async () => {
      await server.waitFor(() => server.webhookUrl !== undefined, patienceMs);
    },
    // Each post is answered once its message is safe, and the next one waits for that.
    untilQuiet: async () => {
      await server.waitFor(
        () => server.posts.at(-1)?.status !== undefined || server.posts.length === 0,
        patienceMs,
      );
    },
    meets: (url) => {
      server.webhookUrl = `${url}/channels/signal/webhook/${secret}`;
    },
    close: () => server.close(),
  };
}

type SendBody = { readonly recipients: readonly string[]; readonly message: string };
