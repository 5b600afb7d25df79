import { loadConfig } from '../config/load-config.ts';
import { timeText } from '../logging/time-text.ts';
import { type AskedStatus, askGateway, type RunningGateway, requireRunning } from './ask-gateway.ts';
import { askProcesses, processLines } from './ask-processes.ts';
import type { CommandOutput } from './print.ts';

/**
 * Shows the state of the gateway on this data folder and of the other processes, and the owner's alerts. If only
 * workers run, shows theirs.
 */
export async function showStatus(): Promise<CommandOutput> {
  const config = loadConfig();
  const answer = await askGateway(config);
  const gateway = answer.kind === 'away' && answer.hasWorkers ? undefined : requireRunning(answer, config);
  const processes = await askProcesses(config.dataDir);
  const others = processes.filter(({ url }) => url !== gateway?.url).flatMap(processLines);
  const lines =
    gateway === undefined
      ? [`No gateway is running on ${config.dataDir}, only workers.`, ...others]
      : gatewayLines(gateway, others);
  return { result: { ...gateway?.status, processes }, lines };
}

function gatewayLines({ url, status }: RunningGateway, others: readonly string[]): readonly string[] {
  const { version, model, startedAt, channels, problems, notices = [] } = status;
  return [
    `Parley ${version} at ${url}, since ${timeText(startedAt)}, model ${model.name}`,
    ...channels.map(channelLine),
    ...others,
    ...problems.map(({ text }) => `! ${text}`),
    ...notices.map(({ text, since }) => `! ${text} (since ${timeText(since)})`),
  ];
}

function channelLine({ id, state, detail, since, nextTryAt }: AskedStatus['channels'][number]): string {
  const from = since === undefined ? '' : `, since ${timeText(since)}`;
  const next = nextTryAt === undefined ? '' : `, next try ${timeText(nextTryAt)}`;
  return `  ${id.padEnd(10)} ${state} (${detail})${from}${next}`;
}
