import { type ProcessAddress, publishProcessAddress } from '../../src/processes/process-address.ts';
import { enterProcesses } from '../../src/processes/process-files.ts';

/** Publishes `url` as the address at which this process serves the data folder; the returned function withdraws it. */
export async function publishAddress(
  dataDir: string,
  { url, role = 'all', variables = [] }: Pick<ProcessAddress, 'url'> & Partial<ProcessAddress>,
): Promise<() => void> {
  const files = enterProcesses(dataDir);
  await publishProcessAddress(files, { url, role, variables }, { add: () => undefined });
  return () => files.release();
}
