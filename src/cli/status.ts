import { timeText } from '#contracts/time-text.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { askRunningGateway } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';

/** Shows the state of the gateway that runs on this data folder, and what its owner is told of. */
export async function runStatus({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const { url, status } = await askRunningGateway(loadConfig());
  if (asJson) {
    process.stdout.write(`${JSON.stringify(status, undefined, 2)}\n`);
    return 0;
  }
  const { version, model, startedAt, channels, problems, notices = [] } = status;
  const lines = [
    `Parley ${version} at ${url}, since ${timeText(startedAt)}, model ${model.name}`,
    ...channels.map(({ id, state, detail }) => `  ${id.padEnd(10)} ${state} (${detail})`),
    ...problems.map(({ text }) => `! ${text}`),
    ...notices.map(({ text, since }) => `! ${text} (since ${timeText(since)})`),
  ];
  process.stdout.write(`${lines.map(stripText).join('\n')}\n`);
  return 0;
}
