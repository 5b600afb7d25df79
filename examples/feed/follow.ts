/**
 * Prints what happens in a conversation, and comes back after a restart of the gateway without missing anything:
 *
 *     PARLEY_URL=http://127.0.0.1:7411 PARLEY_TOKEN=… node examples/feed/follow.ts [session]
 */
const { PARLEY_URL = 'http://127.0.0.1:7411', PARLEY_TOKEN = '' } = process.env;
const [session] = process.argv.slice(2);
const address = `${PARLEY_URL}/api/feed?${new URLSearchParams(session === undefined ? {} : { session })}`;

let lastId = '';
for (;;) {
  try {
    const answer = await fetch(address, {
      headers: { authorization: `Bearer ${PARLEY_TOKEN}`, ...(lastId && { 'last-event-id': lastId }) },
    });
    if (answer.status >= 400 && answer.status < 500) throw new RangeError(await answer.text());
    let rest = '';
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const events = (rest + chunk).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) show(event);
    }
  } catch (error) {
    // What the gateway refuses, it refuses again.
    if (error instanceof RangeError) throw error;
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
}

function show(event: string): void {
  lastId = /^id: (.+)$/m.exec(event)?.[1] ?? lastId;
  const data = /^data: (.+)$/m.exec(event)?.[1];
  if (data === undefined) return;
  const frame = JSON.parse(data);
  if (frame.type === 'snapshot' || frame.type === 'items')
    for (const { author, text } of frame.items) console.log(`${author.name ?? author.kind}: ${text}`);
  if (frame.type === 'event') console.log(JSON.stringify(frame.event));
}
