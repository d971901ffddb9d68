// A browser starts no Worker from file://. There a hidden frame runs the same script, so that the search works without a server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((resolve) => frame.addEventListener("load", () => resolve(frame.contentWindow)));
      frame.srcdoc = `<script>self.postMessage = (data) => frameElement.answer(data)</script><script src="${url}"></script>`;
      document.body.appendChild(frame);
    }

    async postMessage(data) {
      (await this.ready).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
