import { join } from 'node:path';
import { loadConfig } from '../config/load-config.ts';
import { mediaFolder } from '../config/media-folder.ts';
import { runChat } from './chat-client.ts';
import type { ExitCode } from './exit-code.ts';

/** Connects to the gateway running on this machine's data folder; `socket` is its path within the folder. */
export function runChatCommand(socket: string): Promise<ExitCode> {
  const { dataDir } = loadConfig();
  return runChat({
    socketPath: join(dataDir, socket),
    mediaDir: mediaFolder(dataDir),
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
  });
}
