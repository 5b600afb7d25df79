import { openSignalSide } from '../../test/e2e/signal-side.ts';
import { now } from '../clock.ts';
import { followCalls, type Network, patienceMs } from '../network.ts';

/** signal-cli-rest-api in json-rpc mode, with its webhook. */
export async function startSignal(): Promise<Network> {
  const { server, user, person, environment, started, close } = await openSignalSide({ now });
  const numbers = new Map<string, number>();
  return {
    name: 'signal',
    environment,
    say: (number, text) => {
      const from = user(number);
      numbers.set(from.uuid, number);
      const at = now();
      server.people.writes({ from, text });
      return at;
    },
    atOnce: (act) => server.inOneWrite(act),
    follow: followCalls(server, (call) => {
      if (call.path !== '/v2/send') return undefined;
      const { recipients, message } = call.body as SendBody;
      const number = numbers.get(recipients[0] ?? '') ?? Number.NaN;
      return call.status === 0 ? 'open' : { person: number, text: message, at: call.at };
    }),
    answersTo: (number) => person(number).standing(),
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
    meets: started,
    close,
  };
}

type SendBody = { readonly recipients: readonly string[]; readonly message: string };
