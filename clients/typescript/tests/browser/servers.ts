/** A site with a strict content security policy, and a collector of another origin, for the browser tests. */

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { build } from "esbuild";
import { FakeCollector } from "../fake-maker.js";

/** A server and its address. */
export interface Site {
  readonly address: string;
  close(): void;
}

/** Start the site. Its pages run one script of their own, and connect to the collector only. */
export async function startSite(collector: string): Promise<Site> {
  const entry = new URL("page.ts", import.meta.url).pathname;
  const options = { bundle: true, splitting: true, format: "esm", write: false, outdir: "/", target: "es2022" } as const;
  const { outputFiles } = await build({ ...options, entryPoints: [entry] });
  const csp = `default-src 'none'; script-src 'self'; connect-src ${collector}; require-trusted-types-for 'script'`;
  const server = createServer((request, response) => {
    const script = outputFiles.find(({ path }) => path === request.url);
    if (script !== undefined) {
      response.writeHead(200, { "Content-Type": "text/javascript" }).end(script.text);
    } else {
      const headers = { "Content-Type": "text/html", "Content-Security-Policy": csp };
      response.writeHead(200, headers).end('<!doctype html><title>a page</title><script type="module" src="/page.js"></script>');
    }
  });
  return listening(server);
}

/** A collector that counts what it is sent; `preflights` are the evaluations of browsers before. */
export interface CollectorSite extends Site {
  readonly collector: FakeCollector;
  readonly preflights: IncomingMessage[];
  /** What an answer waits for. */
  gate: Promise<unknown>;
}

/** Start a collector that answers pages of any origin, as the settings of a real one may ask for. */
export async function startCollector(): Promise<CollectorSite> {
  const collector = new FakeCollector();
  const preflights: IncomingMessage[] = [];
  const site = { collector, preflights, gate: Promise.resolve() as Promise<unknown> };
  const server = createServer((request, response) => {
    const origin = { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag, Retry-After" };
    if (request.method === "OPTIONS") {
      preflights.push(request);
      const allowed = { "Access-Control-Allow-Headers": "Client-Token, Content-Type, If-None-Match" };
      response.writeHead(204, { ...origin, ...allowed, "Access-Control-Max-Age": "600" }).end();
      return;
    }
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)] as [string, string]);
      const body = request.method === "POST" ? { body: new Uint8Array(Buffer.concat(pieces)) } : {};
      const init = { method: request.method ?? "GET", headers, ...body };
      collector.fetch(`http://collector${request.url ?? ""}`, init).then(
        async (answer) => {
          await site.gate;
          response.writeHead(answer.status, { ...origin, ...Object.fromEntries(answer.headers) });
          response.end(Buffer.from(await answer.arrayBuffer()));
        },
        () => request.socket.destroy(),
      );
    });
  });
  return Object.assign(site, await listening(server));
}

async function listening(server: Server): Promise<Site> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${String(port)}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
