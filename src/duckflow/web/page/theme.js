// Sets the theme before anything is drawn: the one chosen here, or the machine's own.
(() => {
	const chosen = localStorage.getItem("duckflow-theme");
	if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
