import { type ProcessAddress, publishProcessAddress } from '../../src/processes/process-address.ts';
import { enterProcesses } from '../../src/processes/process-files.ts';

/** Makes this process one that serves the data folder at `url`, until the function it returns has been called. */
export async function publishAddress(
  dataDir: string,
  { url, role = 'all', variables = [] }: Pick<ProcessAddress, 'url'> & Partial<ProcessAddress>,
): Promise<() => void> {
  const files = enterProcesses(dataDir);
  await publishProcessAddress(files, { url, role, variables }, { add: () => undefined });
  return () => files.release();
}
