import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { pageAddress } from '../server/page-address.ts';
import type { ExitCode } from './exit-code.ts';

const statusSchema = z.object({
  version: z.string(),
  startedAt: z.number(),
  model: z.object({ name: z.string(), isDemo: z.boolean() }),
  channels: z.array(z.object({ id: z.string(), state: z.string(), detail: z.string() })),
});

/** Asks the gateway that runs on this data folder how it is. */
export async function runStatus({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const config = loadConfig();
  const token =
    config.token?.reveal() ?? (await readFile(join(config.dataDir, 'token'), 'utf8').catch(() => '')).trim();
  const url = pageAddress(config.host, config.port);
  const answer = await fetch(`${url}/api/status`, {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(5_000),
  }).catch((cause: unknown) => {
    throw new ParleyError('store_unavailable', `Parley does not answer at ${url}. Start it with: npm start`, {
      cause,
    });
  });
  const status = statusSchema.safeParse(
    answer.ok ? await answer.json().catch(() => undefined) : undefined,
  ).data;
  if (status === undefined) {
    throw new ParleyError(
      'invalid_input',
      `${url} answers, but it is not the gateway of ${config.dataDir} (HTTP ${answer.status}). Set PARLEY_DATA_DIR and PARLEY_PORT as it was started with.`,
    );
  }
  if (asJson) process.stdout.write(`${JSON.stringify(status, undefined, 2)}\n`);
  else {
    const channels = status.channels.map(
      ({ id, state, detail }) => `  ${id.padEnd(10)} ${state} (${detail})`,
    );
    const { version, model, startedAt } = status;
    const since = new Date(startedAt).toISOString();
    process.stdout.write(
      `Parley ${version} at ${url}, since ${since}, model ${model.name}\n${channels.join('\n')}\n`,
    );
  }
  return 0;
}
