import { expect, it } from 'vitest';
import { SignalApi } from '../../../channels/signal/api.ts';
import { patienceMs } from '../../support/patience.ts';

it('says where it looked for a server and which commands would start one', async () => {
  const api = new SignalApi({ apiUrl: 'http://someone:secret@127.0.0.1:1', callTimeoutMs: patienceMs });
  const reason = await api.about(AbortSignal.timeout(patienceMs)).catch((error: unknown) => String(error));
  expect(reason).toContain('nothing listens at http://127.0.0.1:1.');
  expect(reason).toContain('docker compose --profile signal up -d');
  expect(reason).toMatch(/docker run -d -p 127\.0\.0\.1:1:8080 .*signal-cli-rest-api/);
  expect(reason).not.toContain('secret');
});
