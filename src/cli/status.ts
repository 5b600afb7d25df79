import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { timeText } from '../logging/time-text.ts';
import { type AskedStatus, askRunningGateway } from './ask-gateway.ts';
import { askProcesses, processLines } from './ask-processes.ts';
import type { ExitCode } from './exit-code.ts';

/**
 * Shows the state of the gateway on this data folder and of the processes beside it, and the owner's notices.
 */
export async function runStatus({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const config = loadConfig();
  const { url, status } = await askRunningGateway(config);
  const processes = await askProcesses(config.dataDir);
  if (asJson) {
    process.stdout.write(`${JSON.stringify({ ...status, processes }, undefined, 2)}\n`);
    return 0;
  }
  const { version, model, startedAt, channels, problems, notices = [] } = status;
  const lines = [
    `Parley ${version} at ${url}, since ${timeText(startedAt)}, model ${model.name}`,
    ...channels.map(channelLine),
    ...processes.filter((one) => one.url !== url).flatMap(processLines),
    ...problems.map(({ text }) => `! ${text}`),
    ...notices.map(({ text, since }) => `! ${text} (since ${timeText(since)})`),
  ];
  process.stdout.write(`${lines.map(stripText).join('\n')}\n`);
  return 0;
}

function channelLine({ id, state, detail, since, nextTryAt }: AskedStatus['channels'][number]): string {
  const from = since === undefined ? '' : `, since ${timeText(since)}`;
  const next = nextTryAt === undefined ? '' : `, next try ${timeText(nextTryAt)}`;
  return `  ${id.padEnd(10)} ${state} (${detail})${from}${next}`;
}
