/** Someone who writes to Parley from one channel, and what that person sees of its answers. */
import { existsSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';
import { FrameClient, type FrameTransport } from '../channels/frame-client.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import type { ParleyProcess } from './parley-process.ts';

export type Person = {
  says(text: string): void;
  /** What of Parley's stands in this person's conversation, oldest first. */
  standing(): readonly string[];
  /** True when the channel knows that nothing said is still to be taken in. */
  isHeard(): boolean;
  close(): void;
};

/** A user of the Telegram server, in the private chat with the bot. */
export function telegramPerson(server: TelegramServer, id: number): Person {
  const from = { id, is_bot: false, first_name: `Person ${id}` };
  return {
    says: (text) => void server.people.sends({ from, text }),
    standing: () => server.botMessages(id).map((message) => message.text),
    isHeard: () => server.updates.pending.length === 0,
    close: () => undefined,
  };
}

/**
 * The page: a browser that comes back by itself and repeats what was not acknowledged. Each start of
 * the gateway has a port of its own, and cookies belong to a port, so it signs in once per start.
 */
export function webPerson(running: () => ParleyProcess | undefined): Person {
  return personAt(webClient(running));
}

/** The client of such a page, with every frame it was sent. */
export function webClient(running: () => ParleyProcess | undefined): FrameClient {
  const cookies = new Map<string, Promise<string>>();
  return new FrameClient(async () => {
    const { url, signInLink } = present(running());
    const cookie = cookies.get(url) ?? signIn(signInLink);
    cookies.set(url, cookie);
    return webSocket(url, await cookie);
  });
}

/** The shell: `parley chat` over the socket in the data folder. */
export function terminalPerson(dataDir: string): Person {
  const path = join(dataDir, 'channels', 'terminal', 'terminal.sock');
  return personAt(new FrameClient(() => lineSocket(path)));
}

function personAt(client: FrameClient): Person {
  return {
    says: (text) => void client.say(text),
    standing: () => client.items.filter(({ author }) => author.kind !== 'person').map((item) => item.text),
    isHeard: () => client.unacknowledged.length === 0,
    close: () => client.close(),
  };
}

function present(parley: ParleyProcess | undefined): ParleyProcess {
  // The client takes this for a refused connection and comes back.
  if (parley === undefined || parley.url === '') throw new Error('Parley is not running now');
  return parley;
}

async function signIn(link: string): Promise<string> {
  const answer = await fetch(link, { redirect: 'manual' });
  const cookie = answer.headers.getSetCookie()[0]?.split(';')[0];
  if (cookie === undefined) throw new Error(`no cookie was set by the sign-in link (${answer.status})`);
  return cookie;
}

function webSocket(url: string, cookie: string): Promise<FrameTransport> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/channels/web/chat`, {
    headers: { cookie, origin: url },
  });
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.once('open', () =>
      resolve({
        send: (text) => socket.send(text),
        close: () => socket.terminate(),
        onFrame: (listener) => void socket.on('message', (data) => listener(data.toString())),
        onClose: (listener) => void socket.once('close', listener),
      }),
    );
  });
}

function lineSocket(wanted: string): Promise<FrameTransport> {
  const pointer = `${wanted}.path`;
  const socket = createConnection(existsSync(pointer) ? readFileSync(pointer, 'utf8') : wanted);
  const lines = createInterface({ input: socket });
  // readline passes the stream's errors on; the stream's own listener below reports them.
  lines.on('error', () => undefined);
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.once('connect', () =>
      resolve({
        send: (text) => void socket.write(`${text}\n`),
        close: () => void socket.destroy(),
        onFrame: (listener) => void lines.on('line', listener),
        onClose: (listener) => void socket.once('close', listener),
      }),
    );
  });
}
