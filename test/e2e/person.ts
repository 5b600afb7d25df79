/** Someone who writes to Parley from one channel, and what that person sees of its answers. */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TimelineItem } from '#contracts/timeline.ts';
import { FrameClient } from '../channels/frame-client.ts';
import { openLineSocket, openWebSocket } from '../channels/frame-transports.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import type { TgUser } from '../platforms/telegram/types.ts';
import type { ParleyProcess } from './parley-process.ts';

export type Person = {
  says(text: string): void;
  /** Presses the newest button with this label, or sends the command that stands for it. Throws if there is none. */
  presses(label: string): void;
  /** Parley's messages in this person's conversation, oldest first. */
  standing(): readonly string[];
  /** True when the channel knows that nothing said is still waiting to be accepted. */
  isHeard(): boolean;
  close(): void;
};

/** A user of the Telegram server, in the private chat with the bot. */
export function telegramPerson(
  server: TelegramServer,
  id: number,
  from: TgUser = { id, is_bot: false, first_name: `Person ${id}` },
): Person {
  return {
    says: (text) => void server.people.sends({ from, text }),
    presses: (label) => void server.people.pressesButton({ chat: id, from, label }),
    standing: () => server.botMessages(id).map((message) => message.text),
    isHeard: () => server.updates.pending.length === 0,
    close: () => undefined,
  };
}

/**
 * The page: a browser that reconnects on its own and repeats what wasn't acknowledged. Each start of
 * the gateway has its own port, and cookies belong to a port, so it signs in once per start.
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
    return openWebSocket(url, await cookie);
  });
}

/** The shell: `parley chat` over the socket in the data folder. */
export function terminalPerson(dataDir: string): Person {
  const path = join(dataDir, 'channels', 'terminal', 'terminal.sock');
  // If the path is too long for a socket, a file next to it names another one.
  const pointer = `${path}.path`;
  const socketPath = () => (existsSync(pointer) ? readFileSync(pointer, 'utf8') : path);
  return personAt(new FrameClient(() => openLineSocket(socketPath())));
}

function personAt(client: FrameClient): Person {
  return {
    says: (text) => void client.say(text),
    presses: (label) => presses(client, label),
    standing: () => client.items.filter(({ author }) => author.kind !== 'person').map(shownText),
    isHeard: () => client.unacknowledged.length === 0,
    close: () => client.close(),
  };
}

function shownText({ text, file }: TimelineItem): string {
  return file === undefined ? text : `${text} [${file.name}, ${file.sizeBytes ?? 'gone'}]`;
}

function presses(client: FrameClient, label: string): void {
  for (const { messageId: message, buttons = [] } of client.items.toReversed()) {
    const button = buttons.find((each) => each.label === label);
    if (button) return void client.submit({ type: 'press', id: randomUUID(), message, button: button.id });
  }
  const texts = client.items.map(({ text }) => text);
  client.say(commandIn(texts, label));
}

/** Returns the command that stands for the button, where a channel has none. Throws if there is none. */
export function commandIn(texts: readonly string[], label: string): string {
  const lines = texts.toReversed().flatMap((text) => text.split('\n'));
  const found = lines.find((line) => line.startsWith(`${label}: /`));
  if (found === undefined) throw new Error(`test error: no button or command “${label}”`);
  return found.slice(label.length + 2);
}

function present(parley: ParleyProcess | undefined): ParleyProcess {
  // The client treats this as a refused connection and reconnects.
  if (parley === undefined || parley.url === '') throw new Error('Parley is not running now');
  return parley;
}

async function signIn(link: string): Promise<string> {
  const answer = await fetch(link, { redirect: 'manual' });
  const cookie = answer.headers.getSetCookie()[0]?.split(';')[0];
  if (cookie === undefined) throw new Error(`no cookie was set by the sign-in link (${answer.status})`);
  return cookie;
}
