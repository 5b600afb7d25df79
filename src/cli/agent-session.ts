/** Commands on a session of the running gateway: steer its run, summarize it, and see whether it is busy. */
import { loadConfig } from '../config/load-config.ts';
import { showBusy, steerSession, summarizeSession, waitForRun } from '../operations/agents.ts';
import { askRunning, askRunningGateway } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
import { createFeedLink, endIn } from './follow.ts';
import { type CommandOutput, printLines } from './print.ts';
import { configForReading } from './readable-config.ts';

/** Gives the session's run a message. Prints the id of the run that reads it, unless another one takes it. */
export async function steer(message: string, session: string): Promise<CommandOutput> {
  const config = loadConfig();
  const gateway = await askRunningGateway(config);
  const accepted = await askRunning(gateway, config, steerSession, { session, message });
  return { result: accepted, lines: [accepted.runId] };
}

/** Says whether a session is busy, or any. */
export async function isBusy(session: string | undefined): Promise<CommandOutput> {
  const config = configForReading();
  const gateway = await askRunningGateway(config);
  const busy = await askRunning(gateway, config, showBusy, session === undefined ? {} : { session });
  return { result: busy, lines: [busy.isBusy ? 'busy' : 'idle'] };
}

export type SummarizeCall = {
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly asJson: boolean;
};

/** Summarizes a session's older part and prints the progress. Exit code: 0, or 1 if the summary failed. */
export async function summarize({ asJson, session, agent }: SummarizeCall): Promise<ExitCode> {
  const config = loadConfig();
  const gateway = await askRunningGateway(config);
  const input = { ...(session !== undefined && { session }), ...(agent !== undefined && { agent }) };
  const { runId } = await askRunning(gateway, config, summarizeSession, input);
  for await (const step of createFeedLink(config, { run: runId })) {
    if (step.kind === 'unknown') break;
    const { frame } = step;
    if (frame.type !== 'event') continue;
    if (frame.event.kind === 'compaction' && !asJson) printLines([progressOf(frame.event)]);
    if (endIn(frame)) break;
  }
  const result = await askRunning(gateway, config, waitForRun, { runId, timeoutMs: 0 });
  if (asJson) printLines([JSON.stringify({ runId, ...result })]);
  else printLines([result.status === 'ok' ? 'done' : `failed (${result.reason ?? result.status})`]);
  return result.status === 'ok' ? 0 : 1;
}

function progressOf({ state, progress }: { readonly state: string; readonly progress?: number }): string {
  return progress === undefined ? `summary ${state}` : `summary ${Math.round(100 * progress)} %`;
}
