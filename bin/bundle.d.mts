export function bundleFolder(root: string): string;
export function testBundleFolder(root: string): string;
export function benchBundleFolder(root: string): string;
export function packedFolder(root: string): string;
