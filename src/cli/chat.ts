import { join } from 'node:path';
import { loadConfig } from '../config/load-config.ts';
import { runChat } from './chat-client.ts';
import type { ExitCode } from './exit-code.ts';

/** Joins the gateway that runs on this machine and data folder; `socket` is its path in there. */
export function runChatCommand(socket: string): Promise<ExitCode> {
  const { dataDir } = loadConfig();
  return runChat({
    socketPath: join(dataDir, socket),
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
  });
}
