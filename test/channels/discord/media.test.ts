import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AttachmentRef } from '#contracts/attachment.ts';
import { aDiscordStage, forever } from './discord-stage.ts';

const bytes = Buffer.from('a plan');

/** Returns the ref of a file that Ada sends by these fields, and a function that fetches it. */
async function aFileOf(send: 'upload' | 'forward') {
  const { server, ada, dm, begin } = await aDiscordStage();
  const { adapter, intake } = await begin();
  const file = server.world.addFile({ name: 'plan.txt', mimeType: 'text/plain', bytes });
  const attachments = [server.platform.render.attachment(dm.id, file)];
  const fields = { flags: 1 << 14, message_snapshots: [{ message: { content: '', attachments } }] };
  server.people.sends({ from: ada, ...(send === 'upload' ? { files: [file] } : { fields }) });
  const event = await intake.waitFor(() => intake.events[0]?.event);
  const ref = event.kind === 'message' ? event.attachments[0] : undefined;
  if (ref === undefined) throw new Error('no attachment came');
  const fetched = async (one: AttachmentRef, maxBytes = 100) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of adapter.media.fetch(one, maxBytes, forever)) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
  return { ref, fetched };
}

describe('a file on Discord', () => {
  it('downloads a file up to its size limit', async () => {
    const { ref, fetched } = await aFileOf('upload');
    expect(await fetched(ref)).toEqual(bytes);
    await expect(fetched({ ...ref, sizeBytes: 1 }, 5)).rejects.toMatchObject({ code: 'media_too_large' });
  });

  it("downloads files from Discord's hosts only", async () => {
    const asked: string[] = [];
    const elsewhere = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end('a secret');
    });
    onTestFinished(() => void elsewhere.close());
    elsewhere.listen(0, '127.0.0.1');
    await once(elsewhere, 'listening');
    const { port } = elsewhere.address() as AddressInfo;
    const { ref, fetched } = await aFileOf('upload');
    const moved = { ...ref, ref: ref.ref.replace(/ http.*$/, ` http://127.0.0.1:${port}/latest`) };
    await expect(fetched(moved)).rejects.toMatchObject({ code: 'media_unavailable' });
    expect(asked).toEqual([]);
  });

  it.each(['upload', 'forward'] as const)(
    'finds a file again in its message once its link has expired: %s',
    async (send) => {
      const { ref, fetched } = await aFileOf(send);
      expect(await fetched({ ...ref, ref: ref.ref.replace(/ex=\w+/, 'ex=1') })).toEqual(bytes);
    },
  );
});
