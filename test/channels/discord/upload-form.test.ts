import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { UploadForm } from '../../../channels/discord/upload-form.ts';
import { aFolder } from '../../support/own-folder.ts';

it('reads files piece by piece while they are sent, and announces the length of all', async () => {
  const folder = aFolder();
  const files = await Promise.all(
    [0, 3_000_000].map(async (sizeBytes, index) => {
      const path = join(folder, String(index));
      await writeFile(path, Buffer.alloc(sizeBytes, 7));
      return { path, name: `ö ${index}.bin`, mimeType: 'text/plain', sizeBytes };
    }),
  );
  const form = new UploadForm({ content: 'größer' }, files);
  const pieces: Buffer[] = [];
  for await (const piece of form.bytes()) pieces.push(Buffer.from(piece));
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024);
  const whole = Buffer.concat(pieces);
  expect(form.headers['content-length']).toBe(String(whole.length));
  // As another implementation reads it.
  const read = await new Response(whole, { headers: form.headers }).formData();
  const [first, second] = ['files[0]', 'files[1]'].map((field) => read.get(field) as File);
  expect(read.get('payload_json')).toBe('{"content":"größer"}');
  expect([first?.name, first?.size, second?.name, second?.size]).toEqual([
    ...['ö 0.bin', 0, 'ö 1.bin', 3_000_000],
  ]);
});
