/** A bot of a few lines, on node:http for signal-cli-rest-api's webhook and undici for its answers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { request } from 'undici';
import { hear, required } from './turns.ts';

type Received = {
  readonly params: {
    readonly account: string;
    readonly envelope?: {
      readonly sourceUuid: string;
      readonly dataMessage?: { readonly message: string | null };
    };
  };
};

const sendUrl = `${required('SIGNAL_API_URL')}/v2/send`;

const server = createServer(async (incoming, response) => {
  const { account, envelope } = (JSON.parse(await text(incoming)) as Received).params;
  response.end();
  const message = envelope?.dataMessage?.message;
  if (!envelope || !message) return;
  const { sourceUuid } = envelope;
  hear(sourceUuid, message, (answer) => send(account, sourceUuid, answer));
});

async function send(number: string, recipient: string, message: string): Promise<void> {
  const answer = await request(sendUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ number, recipients: [recipient], message }),
  });
  if (answer.statusCode !== 201) throw new Error(`${answer.statusCode}: ${await answer.body.text()}`);
  await answer.body.dump();
}

server.listen(0, '127.0.0.1', () => {
  console.log(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
